//! The accessibility tree as Chromium gives it, made small: roles, names and states of the nodes that are not ignored.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::super::wire::Payload;
use crate::policy::limits::SNAPSHOT_NAME;

/// Roles that a person acts on.
const INTERACTIVE: &[&str] = &[
    "button",
    "Canvas",
    "checkbox",
    "ColorWell",
    "combobox",
    "Date",
    "DateTime",
    "DisclosureTriangle",
    "DisclosureTriangleGrouped",
    "Iframe",
    "IframePresentational",
    "InputTime",
    "link",
    "listbox",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "option",
    "radio",
    "searchbox",
    "slider",
    "spinbutton",
    "switch",
    "tab",
    "textbox",
    "treeitem",
];

/// One node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Its role; `text` for a piece of text.
    pub role: String,
    /// Its accessible name, cut.
    pub name: String,
    /// What it holds: the text of a field, the number of a slider.
    pub value: String,
    /// Its states: `checked`, `disabled`, `level=2`, …
    pub states: Vec<String>,
    /// Whether a person acts on it.
    pub interactive: bool,
    /// Whether it stands for nothing: it is left out, and its children are not.
    pub hollow: bool,
    /// The node of the document.
    pub backend: Option<i64>,
    pub(super) parent: Option<usize>,
    pub(super) children: Vec<usize>,
}

/// A tree of nodes.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) root: usize,
}

/// Nodes as they come, with the names that they call each other by.
#[derive(Default)]
struct Reading {
    nodes: Vec<Node>,
    numbers: HashMap<i64, usize>,
    families: Vec<Vec<i64>>,
}

impl Reading {
    fn add(&mut self, value: Value) {
        // A node of a newer Chromium that is not understood leaves a gap, and no more.
        let node: AxNode = serde_json::from_value(value).unwrap_or_default();
        // The pieces that a line is broken into; their text stands in their parent.
        if node.role.value == "InlineTextBox" {
            return;
        }
        let number = |id: &String| id.parse().ok();
        if let Some(number) = number(&node.node_id) {
            self.numbers.insert(number, self.nodes.len());
        }
        self.families
            .push(node.child_ids.iter().filter_map(number).collect());
        self.nodes.push(Node::of(&node));
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AxNode {
    node_id: String,
    ignored: bool,
    role: AxValue,
    name: AxValue,
    value: AxValue,
    properties: Vec<AxProperty>,
    child_ids: Vec<String>,
    #[serde(rename = "backendDOMNodeId")]
    backend: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AxValue {
    value: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AxProperty {
    name: String,
    value: AxValue,
}

impl AxValue {
    fn text(&self) -> String {
        match &self.value {
            Value::String(text) => cut(text),
            Value::Null => String::new(),
            other => other.to_string(),
        }
    }

    fn is_true(&self) -> bool {
        self.value == true || self.value == "true"
    }
}

impl Tree {
    /// Joins what was read to a tree; the root is the node of this number, or the first one.
    fn join(reading: Reading, root: Option<i64>) -> Option<Self> {
        let Reading {
            mut nodes,
            numbers,
            families,
        } = reading;
        for (parent, children) in families.into_iter().enumerate() {
            for child in children
                .iter()
                .filter_map(|child| numbers.get(child).copied())
            {
                // A tree has one way to each node; anything else would be walked without an end.
                if child != parent && nodes[child].parent.is_none() {
                    nodes[child].parent = Some(parent);
                    nodes[parent].children.push(child);
                }
            }
        }
        let root = root.and_then(|root| nodes.iter().position(|node| node.backend == Some(root)));
        let root = root.unwrap_or(0);
        (!nodes.is_empty()).then_some(Self { nodes, root })
    }

    /// From the answer of the protocol, node by node.
    pub(super) fn read(payload: &Payload, root: Option<i64>) -> Option<Self> {
        let mut reading = Reading::default();
        payload
            .entries("nodes", &mut |node| reading.add(node))
            .ok()?;
        Self::join(reading, root)
    }

    /// Nodes, hollow ones included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn has_frames(&self) -> bool {
        self.nodes
            .iter()
            .any(|node| node.role.starts_with("Iframe"))
    }

    /// Hangs the tree of a frame below the element that holds it.
    pub(super) fn graft(&mut self, owner: i64, inner: Self) {
        let Some(holder) = self
            .nodes
            .iter()
            .position(|node| node.backend == Some(owner))
        else {
            return;
        };
        let shift = self.nodes.len();
        let root = inner.root + shift;
        self.nodes.extend(inner.nodes.into_iter().map(|mut node| {
            node.parent = node.parent.map(|parent| parent + shift);
            node.children.iter_mut().for_each(|child| *child += shift);
            node
        }));
        self.nodes[root].parent = Some(holder);
        self.nodes[holder].children.push(root);
    }
}

impl Node {
    fn of(node: &AxNode) -> Self {
        let role = match node.role.text().as_str() {
            "StaticText" => "text".to_owned(),
            other => other.to_owned(),
        };
        let name = node.name.text();
        let focusable = node
            .properties
            .iter()
            .any(|property| property.name == "focusable" && property.value.is_true());
        let known = INTERACTIVE.contains(&role.as_str());
        let interactive = !node.ignored && (known || (focusable && role != "RootWebArea"));
        let wrapper = matches!(role.as_str(), "none" | "generic" | "");
        let hollow = node.ignored
            || role == "LineBreak"
            || (role == "text" && name.is_empty())
            || (wrapper && name.is_empty() && !interactive);
        Self {
            states: node.properties.iter().filter_map(state).collect(),
            value: node.value.text(),
            backend: node.backend,
            role,
            name,
            interactive,
            hollow,
            parent: None,
            children: Vec::new(),
        }
    }
}

/// A property as a state; most say nothing that anybody would act on.
fn state(property: &AxProperty) -> Option<String> {
    let name = property.name.as_str();
    let value = &property.value;
    match name {
        "disabled" | "focused" | "required" | "readonly" | "selected" | "modal" | "busy" => {
            value.is_true().then(|| name.to_owned())
        }
        "checked" | "pressed" => Some(match value.text().as_str() {
            "mixed" => format!("{name}=mixed"),
            "true" => name.to_owned(),
            _ => format!("not-{name}"),
        }),
        "expanded" if value.is_true() => Some("expanded".to_owned()),
        "expanded" => Some("collapsed".to_owned()),
        "invalid" => (value.text() != "false").then(|| "invalid".to_owned()),
        "level" => Some(format!("level={}", value.text())),
        _ => None,
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SNAPSHOT_NAME) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in super::super) fn node(
        id: &str,
        role: &str,
        name: &str,
        backend: i64,
        children: &[&str],
    ) -> Value {
        json!({"nodeId": id, "ignored": false, "role": {"value": role}, "name": {"value": name},
            "backendDOMNodeId": backend, "childIds": children})
    }

    pub(in super::super) fn tree(nodes: Vec<Value>) -> Tree {
        let mut reading = Reading::default();
        nodes.into_iter().for_each(|node| reading.add(node));
        Tree::join(reading, None).unwrap()
    }

    #[test]
    fn states_are_words_that_one_acts_on() {
        let mut box_ = node("1", "checkbox", "Agree", 5, &[]);
        box_["properties"] = json!([
            {"name": "focusable", "value": {"value": true}},
            {"name": "checked", "value": {"value": "mixed"}},
            {"name": "disabled", "value": {"value": true}},
            {"name": "invalid", "value": {"value": "false"}},
            {"name": "labelledby", "value": {"type": "nodeList"}},
        ]);
        let tree = tree(vec![box_]);
        assert_eq!(tree.nodes[0].states, ["checked=mixed", "disabled"]);
        assert!(tree.nodes[0].interactive);
    }

    #[test]
    fn a_tree_with_circles_is_still_a_tree() {
        let tree = tree(vec![
            node("1", "main", "", 1, &["2", "1", "9"]),
            node("2", "button", "a", 2, &["1", "2"]),
        ]);
        assert_eq!(tree.nodes[0].children, [1]);
        assert_eq!(tree.nodes[1].children, [0]);
    }

    #[test]
    fn a_frame_hangs_below_its_element() {
        let mut outer = tree(vec![
            node("1", "RootWebArea", "", 1, &["2"]),
            node("2", "Iframe", "inner", 7, &[]),
        ]);
        outer.graft(7, tree(vec![node("1", "button", "in", 9, &[])]));
        assert_eq!(outer.nodes[1].children, [2]);
        assert_eq!(outer.nodes[2].parent, Some(1));
        outer.graft(1_000, tree(vec![node("1", "button", "lost", 9, &[])]));
        assert_eq!(outer.len(), 3);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let long = "ü".repeat(SNAPSHOT_NAME + 1);
        let tree = tree(vec![node("1", "button", &long, 1, &[])]);
        assert_eq!(tree.nodes[0].name.chars().count(), SNAPSHOT_NAME + 1);
    }
}
