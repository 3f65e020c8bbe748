//! The commands that act on a page as a hand does, and those that read what a screen reader would.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Absent, Command, Evaluated, NoReply, RemoteObject, is_absent};

impl Absent for i64 {}

commands! {
    /// A movement, a press, a release, or a turn of the wheel.
    DispatchMouseEvent<'a> = "Input.dispatchMouseEvent" -> NoReply {
        /// `mouseMoved`, `mousePressed`, `mouseReleased` or `mouseWheel`.
        #[serde(rename = "type")]
        kind: &'a str,
        /// CSS pixels of the viewport.
        x: f64,
        /// CSS pixels of the viewport.
        y: f64,
        /// The bits of the modifier keys.
        modifiers: u32,
        /// The button that changes, or `none`.
        button: &'a str,
        /// The bits of the buttons that are down.
        buttons: u32,
        /// Which click of a double or triple one.
        click_count: u32,
        /// CSS pixels to the right, of a wheel.
        delta_x: Option<f64>,
        /// CSS pixels downwards, of a wheel.
        delta_y: Option<f64>,
    }
    /// A key goes down or up.
    DispatchKeyEvent<'a> = "Input.dispatchKeyEvent" -> NoReply {
        /// `keyDown`, `rawKeyDown` (one that makes no text) or `keyUp`.
        #[serde(rename = "type")]
        kind: &'a str,
        /// The bits of the modifier keys.
        modifiers: u32,
        /// `KeyboardEvent.key`.
        key: &'a str,
        /// `KeyboardEvent.code`.
        code: &'a str,
        /// `KeyboardEvent.keyCode`.
        windows_virtual_key_code: u32,
        /// `KeyboardEvent.location`.
        location: u32,
        /// What it writes.
        text: Option<&'a str>,
        /// Whether it is held.
        auto_repeat: bool,
        /// What the system's own shortcut does; macOS leaves that to its menus, which there are none of here.
        commands: Vec<&'a str>,
    }
    /// Writes text as an input method does, without keys.
    InsertText<'a> = "Input.insertText" -> NoReply {
        /// The text.
        text: &'a str,
    }
    /// Whether a drag of a draggable element is told to us in place of the system's own drag and drop.
    SetInterceptDrags = "Input.setInterceptDrags" -> NoReply {
        /// On or off.
        enabled: bool,
    }
    /// One step of a drag that was told to us.
    DispatchDragEvent<'a> = "Input.dispatchDragEvent" -> NoReply {
        /// `dragEnter`, `dragOver`, `drop` or `dragCancel`.
        #[serde(rename = "type")]
        kind: &'a str,
        /// CSS pixels of the viewport.
        x: f64,
        /// CSS pixels of the viewport.
        y: f64,
        /// What is dragged, as it was told to us.
        data: Value,
        /// The bits of the modifier keys.
        modifiers: u32,
    }
    /// A handle to a node in a world.
    ResolveNode<'a> = "DOM.resolveNode" -> ResolvedNode {
        /// The node.
        backend_node_id: i64,
        /// The world.
        execution_context_id: i64,
        /// Released together.
        object_group: &'a str,
    }
    /// The node of a handle.
    DescribeNode<'a> = "DOM.describeNode" -> DescribedNode {
        /// The handle.
        object_id: &'a str,
    }
    /// Calls a function on a handle.
    CallFunctionOn<'a> = "Runtime.callFunctionOn" -> Evaluated {
        /// The function.
        function_declaration: &'a str,
        /// Its `this`.
        object_id: &'a str,
        /// The value itself instead of a handle.
        return_by_value: bool,
    }
    /// Lets go of handles.
    ReleaseObjectGroup<'a> = "Runtime.releaseObjectGroup" -> NoReply {
        /// Their group.
        object_group: &'a str,
    }
    /// Picks files in a file input.
    SetFileInputFiles<'a> = "DOM.setFileInputFiles" -> NoReply {
        /// Paths that the browser can read.
        files: Vec<&'a str>,
        /// The input.
        object_id: &'a str,
    }
    /// The frames of a page that are in its own process.
    GetFrameTree = "Page.getFrameTree" -> FrameTree {}
    /// The element that holds a frame.
    GetFrameOwner<'a> = "DOM.getFrameOwner" -> FrameOwner {
        /// The frame.
        frame_id: &'a str,
    }
    /// The accessibility tree of a frame.
    GetFullAxTree<'a> = "Accessibility.getFullAXTree" -> NoReply {
        /// The frame; none is the page's own.
        frame_id: Option<&'a str>,
    }
    /// The accessibility tree below a node.
    QueryAxTree = "Accessibility.queryAXTree" -> NoReply {
        /// The node.
        backend_node_id: i64,
    }
}

/// `DOM.resolveNode`.
#[derive(Debug, Deserialize)]
pub struct ResolvedNode {
    /// The handle.
    pub object: RemoteObject,
}

/// `DOM.describeNode`.
#[derive(Debug, Deserialize)]
pub struct DescribedNode {
    /// The node.
    pub node: NodeId,
}

/// What is read of a node.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeId {
    /// Its number, the same for the life of the node.
    pub backend_node_id: i64,
}

/// `DOM.getFrameOwner`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FrameOwner {
    /// The element's number.
    pub backend_node_id: i64,
}

/// `Page.getFrameTree`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FrameTree {
    /// The page's own frame, and those in it.
    pub frame_tree: FrameBranch,
}

/// A frame and those in it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FrameBranch {
    /// The frame.
    pub frame: Frame,
    /// The frames in it.
    #[serde(default)]
    pub child_frames: Vec<FrameBranch>,
}

/// What is read of a frame.
#[derive(Debug, Deserialize)]
pub struct Frame {
    /// Its id.
    pub id: String,
}
