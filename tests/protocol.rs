//! Every command that we send, and every parameter of it, is in the published protocol: Chromium ignores a parameter that
//! it does not know, so that a typing error would go unnoticed.

use std::collections::{BTreeMap, BTreeSet};

use gpu_browser::browser::command::{SENT, act, lifecycle, look};

/// See the head of the file for where it comes from.
const PUBLISHED: &str = include_str!("data/protocol.txt");

type Protocol = BTreeMap<&'static str, BTreeSet<&'static str>>;

fn published() -> Protocol {
    let lines = PUBLISHED.lines().filter(|line| !line.starts_with('#'));
    let words = lines.map(str::split_whitespace);
    words
        .filter_map(|mut words| Some((words.next()?, words.collect())))
        .collect()
}

/// The name on the wire of a field.
fn on_the_wire(field: &str) -> String {
    match field {
        "source_url" => return "sourceURL".to_owned(),
        "kind" => return "type".to_owned(),
        _ => {}
    }
    let mut parts = field.split('_');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (first, rest) = part.split_at(1);
        name.push_str(&first.to_uppercase());
        name.push_str(rest);
    }
    name
}

/// What the protocol does not have of a command.
fn unknown(protocol: &Protocol, method: &str, fields: &[&str]) -> Vec<String> {
    let Some(parameters) = protocol.get(method) else {
        return vec![method.to_owned()];
    };
    let names = fields.iter().map(|field| on_the_wire(field));
    names
        .filter(|name| !parameters.contains(name.as_str()))
        .map(|name| format!("{method}: {name}"))
        .collect()
}

#[test]
fn every_command_and_parameter_that_is_sent_is_published() {
    let protocol = published();
    assert!(protocol.len() > 600, "{} commands", protocol.len());
    assert!(!SENT.is_empty());
    let missing: Vec<String> = [SENT, act::SENT, lifecycle::SENT, look::SENT]
        .into_iter()
        .flatten()
        .flat_map(|(method, fields)| unknown(&protocol, method, fields))
        .collect();
    assert!(missing.is_empty(), "not in the protocol: {missing:#?}");
}

#[test]
fn a_misspelt_command_or_parameter_is_found() {
    let protocol = published();
    for (method, fields, missing) in [
        (
            "Page.captureScreenShot",
            &["format"][..],
            "Page.captureScreenShot",
        ),
        (
            "Page.captureScreenshot",
            &["format", "qualitty"],
            "Page.captureScreenshot: qualitty",
        ),
        (
            "Runtime.compileScript",
            &["source_uri"],
            "Runtime.compileScript: sourceUri",
        ),
    ] {
        assert_eq!(unknown(&protocol, method, fields), [missing]);
    }
}

/// The names above are those of the fields; this holds them against what is really written.
#[test]
fn fields_are_written_under_these_names() {
    use gpu_browser::browser::command::{CompileScript, CreateTarget};
    let script = serde_json::to_value(CompileScript {
        expression: "",
        source_url: "",
        persist_script: false,
    });
    let target = serde_json::to_value(CreateTarget {
        url: "",
        browser_context_id: "",
        width: 1,
        height: 1,
        new_window: true,
    });
    for (method, written) in [
        ("Runtime.compileScript", script.unwrap()),
        ("Target.createTarget", target.unwrap()),
    ] {
        let (_, fields) = SENT.iter().find(|(name, _)| *name == method).unwrap();
        let names: BTreeSet<String> = fields.iter().map(|field| on_the_wire(field)).collect();
        let written: BTreeSet<String> = written.as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, written, "{method}");
    }
}
