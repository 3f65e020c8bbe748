//! A tree as indented lines `ref role "name" state`: what a person can act on, or all of it, or what a pattern finds.

use regex::{Regex, RegexBuilder};

use super::tree::{Node, Tree};

/// Levels that lines are indented by at most; a page can nest without an end.
const INDENT: usize = 24;
/// Ancestors that the path of a hit names, the nearest ones.
const PATH: usize = 6;
/// Bytes that a pattern may take when it is compiled.
const PATTERN_BYTES: usize = 256 * 1024;

/// Which lines are wanted.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Only what a person acts on.
    pub interactive: bool,
    /// Levels of lines; deeper ones are counted.
    pub depth: Option<usize>,
    /// Only lines that this finds, each with its path.
    pub find: Option<Pattern>,
}

/// A text, in any case, or `/a regular expression/`, with `i` behind it in any case too.
#[derive(Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Parses it; the error says why a regular expression is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expression = text.strip_prefix('/').and_then(|rest| {
            let plain = rest.strip_suffix('/').map(|inner| (inner, false));
            plain.or_else(|| rest.strip_suffix("/i").map(|inner| (inner, true)))
        });
        let (source, any_case) = match expression {
            Some((inner, any_case)) => (inner.to_owned(), any_case),
            None => (regex::escape(text), true),
        };
        RegexBuilder::new(&source)
            .case_insensitive(any_case)
            .size_limit(PATTERN_BYTES)
            .dfa_size_limit(PATTERN_BYTES)
            .build()
            .map(Self)
            .map_err(|error| {
                error
                    .to_string()
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .to_owned()
            })
    }

    fn finds(&self, node: &Node) -> bool {
        [&node.name, &node.value, &node.role]
            .iter()
            .any(|text| self.0.is_match(text))
    }
}

/// Lines with the nodes that their refs stand for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The lines.
    pub lines: Vec<String>,
    /// The nodes of the refs, in their order.
    pub nodes: Vec<i64>,
    /// Lines that lie deeper than what was asked for.
    pub deeper: usize,
    /// Lines for which there was no room.
    pub lost: usize,
}

impl Tree {
    /// The lines that are wanted, their refs numbered from `first`, in at most `bytes`.
    pub fn lines(&self, wanted: &Wanted, first: u64, bytes: usize) -> Lines {
        let mut found = Lines::default();
        let mut room = bytes;
        let mut waiting = vec![(self.root, 0)];
        // The protocol gives trees, but what is walked once cannot be walked for ever.
        let mut steps = self.nodes.len();
        while let Some((index, depth)) = waiting.pop() {
            let Some(left) = steps.checked_sub(1) else {
                break;
            };
            steps = left;
            let node = &self.nodes[index];
            let shown = self.is_wanted(index, wanted);
            if shown && wanted.depth.is_some_and(|most| depth >= most) {
                found.deeper += 1;
            } else if shown {
                self.add(index, depth, wanted, first, &mut room, &mut found);
            }
            if wanted.interactive && node.role == "MenuListPopup" {
                continue;
            }
            let below = depth + usize::from(shown && wanted.find.is_none());
            let children = node.children.iter().rev();
            waiting.extend(children.map(|child| (*child, below)));
        }
        found
    }

    fn is_wanted(&self, index: usize, wanted: &Wanted) -> bool {
        let node = &self.nodes[index];
        if node.hollow || (wanted.interactive && !node.interactive) {
            return false;
        }
        // A text that says what its element is named already.
        let said =
            |parent: usize| !self.nodes[parent].hollow && self.nodes[parent].name == node.name;
        if node.role == "text" && node.parent.is_some_and(said) {
            return false;
        }
        wanted
            .find
            .as_ref()
            .is_none_or(|pattern| pattern.finds(node))
    }

    fn add(
        &self,
        index: usize,
        depth: usize,
        wanted: &Wanted,
        first: u64,
        room: &mut usize,
        found: &mut Lines,
    ) {
        let node = &self.nodes[index];
        let mut line = " ".repeat(2 * depth.min(INDENT));
        if node.backend.is_some() {
            line.push_str(&format!("e{} ", first + found.nodes.len() as u64));
        }
        line.push_str(&describe(node));
        if wanted.find.is_some() {
            line.push_str(&self.path(index));
        }
        match room.checked_sub(line.len() + 1) {
            Some(left) => {
                *room = left;
                found.nodes.extend(node.backend);
                found.lines.push(line);
            }
            None => found.lost += 1,
        }
    }

    /// Where a hit lies: its nearest ancestors, outermost first.
    fn path(&self, index: usize) -> String {
        let parents = std::iter::successors(self.nodes[index].parent, |at| self.nodes[*at].parent);
        let names: Vec<String> = parents
            .map(|at| &self.nodes[at])
            .filter(|node| !node.hollow)
            .take(PATH)
            .map(|node| match node.name.as_str() {
                "" => node.role.clone(),
                name => format!("{} {}", node.role, quoted(name)),
            })
            .collect();
        if names.is_empty() {
            return String::new();
        }
        let outermost_first: Vec<String> = names.into_iter().rev().collect();
        format!("  in {}", outermost_first.join(" > "))
    }
}

fn describe(node: &Node) -> String {
    let mut words = vec![node.role.clone()];
    if !node.name.is_empty() {
        words.push(quoted(&node.name));
    }
    if !node.value.is_empty() && node.value != node.name {
        words.push(format!("={}", quoted(&node.value)));
    }
    words.extend(node.states.iter().cloned());
    words.join(" ")
}

/// A page's text in quotes. What would break the line, hide in it or turn it round is written out.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push(' '),
            c if c.is_control() || is_invisible(c) => {
                out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Bidirectional controls, zero-width characters and line separators.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tree::tests::{node, tree};
    use super::*;

    fn form() -> Tree {
        let mut named = node("6", "textbox", "Name", 16, &[]);
        named["value"] = json!({"value": "Ada"});
        named["properties"] = json!([{"name": "required", "value": {"value": true}}]);
        let mut wrapper = node("3", "generic", "", 13, &["4", "6"]);
        wrapper["ignored"] = json!(true);
        tree(vec![
            node("1", "RootWebArea", "Shop", 11, &["2", "3"]),
            node("2", "heading", "Order", 12, &["7"]),
            wrapper,
            node("4", "button", "Go", 14, &["5"]),
            node("5", "StaticText", "Go", 15, &[]),
            named,
            node("7", "StaticText", "Order", 17, &[]),
        ])
    }

    fn lines(wanted: &Wanted) -> Lines {
        form().lines(wanted, 5, 1_000)
    }

    #[test]
    fn what_a_person_acts_on_comes_with_its_refs_and_states() {
        let wanted = Wanted {
            interactive: true,
            ..Wanted::default()
        };
        let found = lines(&wanted);
        assert_eq!(
            found.lines,
            ["e5 button \"Go\"", "e6 textbox \"Name\" =\"Ada\" required"]
        );
        assert_eq!(found.nodes, [14, 16]);
    }

    #[test]
    fn the_whole_tree_is_indented_and_says_nothing_twice() {
        let found = lines(&Wanted::default());
        assert_eq!(
            found.lines,
            [
                "e5 RootWebArea \"Shop\"",
                "  e6 heading \"Order\"",
                "  e7 button \"Go\"",
                "  e8 textbox \"Name\" =\"Ada\" required"
            ]
        );
        let found = lines(&Wanted {
            depth: Some(1),
            ..Wanted::default()
        });
        assert_eq!((found.lines.len(), found.deeper), (1, 3));
    }

    #[test]
    fn a_hit_comes_with_its_path() {
        for (pattern, hits) in [
            ("ada", 1),
            ("/^Go$/", 1),
            ("/^go$/", 0),
            ("/^go$/i", 1),
            ("a.a", 0),
        ] {
            let wanted = Wanted {
                find: Some(Pattern::parse(pattern).unwrap()),
                ..Wanted::default()
            };
            let found = lines(&wanted);
            assert_eq!(found.lines.len(), hits, "{pattern}: {found:?}");
            assert!(
                found
                    .lines
                    .iter()
                    .all(|line| line.ends_with("  in RootWebArea \"Shop\""))
            );
        }
        assert!(Pattern::parse("/(/").unwrap_err().contains("unclosed"));
        assert!(Pattern::parse("/a{9999}{9999}/").is_err());
    }

    #[test]
    fn lines_without_room_are_counted() {
        let found = form().lines(&Wanted::default(), 1, 30);
        assert_eq!((found.lines.len(), found.lost), (1, 3));
        assert_eq!(found.nodes.len(), 1);
    }

    #[test]
    fn a_nest_of_a_hundred_thousand_levels_is_walked_without_a_deep_stack() {
        let levels = 100_000;
        let nodes = (0..levels)
            .map(|n| node(&n.to_string(), "group", "g", n, &[&(n + 1).to_string()]))
            .collect();
        let found = tree(nodes).lines(&Wanted::default(), 1, 64 << 20);
        assert_eq!(found.lines.len(), usize::try_from(levels).unwrap());
        assert!(found.lines.iter().all(|line| line.len() < 80));
    }

    #[test]
    fn names_that_would_break_or_turn_the_line_are_written_out() {
        assert_eq!(
            quoted("a\"b\\c\nd\u{202e}e\u{0}ü"),
            "\"a\\\"b\\\\c\\nd\\u{202e}e\\u{0}ü\""
        );
    }
}
