//! What a page is to a screen reader: the accessibility tree, with those of its frames grafted on.

pub mod lines;
pub mod tree;

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use self::tree::Tree;
use super::command::Command;
use super::command::act::{
    DescribeNode, FrameBranch, GetFrameOwner, GetFrameTree, GetFullAxTree, QueryAxTree,
};
use super::locate::{Aim, Finding, Miss};
use super::page::{Page, PageError};
use super::pipe::CallError;
use crate::policy::limits::{SNAPSHOT_ELEMENTS, SNAPSHOT_FRAMES};

/// How large a page, or a part of it, is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Measure {
    /// Elements of the document, or in the part.
    pub elements: usize,
    /// The address.
    pub url: String,
    /// The title.
    pub title: String,
}

/// Why there is no tree.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The page's reason.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The part that was asked for is not there.
    #[error("the part is not there")]
    Missed(Miss),
    /// It has too many elements.
    #[error("{0} elements")]
    TooLarge(usize),
}

impl Page {
    /// The accessibility tree of the page, or of the part that a selector matches.
    pub async fn tree(
        &self,
        selector: Option<&str>,
        deadline: Instant,
    ) -> Result<(Tree, Measure), SnapshotError> {
        let asked = selector.map_or(json!({}), |selector| json!({ "selector": selector }));
        let measured: Finding<Measure> = self.library("measure", &asked, deadline).await?;
        let measure = measured.into_result().map_err(SnapshotError::Missed)?;
        if measure.elements > SNAPSHOT_ELEMENTS {
            return Err(SnapshotError::TooLarge(measure.elements));
        }
        let mut tree = match selector {
            None => {
                let whole = GetFullAxTree { frame_id: None };
                self.read_tree(&whole, None, deadline).await?
            }
            Some(selector) => self.part(selector, deadline).await?,
        };
        self.graft_frames(&mut tree, deadline).await?;
        Ok((tree, measure))
    }

    async fn part(&self, selector: &str, deadline: Instant) -> Result<Tree, SnapshotError> {
        let aim = Aim::Selector(selector.to_owned());
        let handle = self.element(&aim, deadline).await?;
        let handle = handle.map_err(SnapshotError::Missed)?;
        let describe = DescribeNode { object_id: &handle };
        let described = self.connection.start(Some(&self.session), &describe);
        let described = timeout_at(deadline, described)
            .await
            .map_err(|_| PageError::Timeout)?
            .map_err(PageError::from)?;
        self.release();
        let backend_node_id = described.node.backend_node_id;
        let query = QueryAxTree { backend_node_id };
        Ok(self
            .read_tree(&query, Some(backend_node_id), deadline)
            .await?)
    }

    /// Hangs the trees of frames of the same process below the elements that hold them; a frame that goes away meanwhile
    /// is left out.
    async fn graft_frames(&self, tree: &mut Tree, deadline: Instant) -> Result<(), PageError> {
        if !tree.has_frames() {
            return Ok(());
        }
        let frames = self.connection.start(Some(&self.session), &GetFrameTree {});
        let frames = timeout_at(deadline, frames)
            .await
            .map_err(|_| PageError::Timeout)??;
        for frame in inner_frames(&frames.frame_tree) {
            let owner = GetFrameOwner { frame_id: frame };
            let owner = self.connection.start(Some(&self.session), &owner);
            let whole = GetFullAxTree {
                frame_id: Some(frame),
            };
            let owner = timeout_at(deadline, owner)
                .await
                .map_err(|_| PageError::Timeout)?;
            match (owner, self.read_tree(&whole, None, deadline).await) {
                (Ok(owner), Ok(inner)) => tree.graft(owner.backend_node_id, inner),
                (_, Err(PageError::Timeout)) => return Err(PageError::Timeout),
                _ => {}
            }
        }
        Ok(())
    }

    async fn read_tree<C: Command>(
        &self,
        command: &C,
        root: Option<i64>,
        deadline: Instant,
    ) -> Result<Tree, PageError> {
        let left: Duration = deadline.saturating_duration_since(Instant::now());
        let read = self
            .connection
            .start_raw(Some(&self.session), command, left);
        let payload = read.await.map_err(|error| match error {
            CallError::Timeout { .. } => PageError::Timeout,
            error => error.into(),
        })?;
        // Tens of megabytes for a large page: not on a thread that carries everything else.
        let parsed = tokio::task::spawn_blocking(move || Tree::read(&payload, root));
        let malformed = CallError::Malformed { method: C::METHOD };
        parsed.await.ok().flatten().ok_or(malformed.into())
    }
}

/// The frames in a frame, outer ones first.
fn inner_frames(outermost: &FrameBranch) -> Vec<&str> {
    let mut waiting: std::collections::VecDeque<&FrameBranch> =
        outermost.child_frames.iter().collect();
    let mut found = Vec::new();
    while let Some(branch) = waiting.pop_front() {
        found.push(branch.frame.id.as_str());
        waiting.extend(&branch.child_frames);
        if found.len() == SNAPSHOT_FRAMES {
            break;
        }
    }
    found
}
