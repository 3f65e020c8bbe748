//! What an agent has seen of a page: the scale of its last picture, and the refs of its last snapshot. Its next words
//! refer to these.

use crate::browser::capture::Picture;
use crate::browser::locate::Aim;
use crate::browser::page::Viewport;

/// The last picture and the last snapshot of a page.
#[derive(Debug, Default)]
pub(super) struct Sight {
    picture: Option<Frame>,
    /// Refs that were ever given out; each is used once, so that an old one is never taken for another node.
    refs: u64,
    snapshots: u64,
    snapshot: Option<Snapshot>,
}

/// How the pixels of a picture lie on the page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Frame {
    width: f64,
    height: f64,
    css_per_px: f64,
    /// CSS pixels of the document; `None` where the picture is of the viewport.
    origin: Option<(f64, f64)>,
}

/// The last snapshot of a page.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// The document that it is of.
    pub(super) loader: String,
    /// `s1`, `s2`, …
    pub(super) name: String,
    /// The first of its refs.
    first: u64,
    /// The node of each of its refs.
    nodes: Vec<i64>,
    /// Its lines, kept for the replies that give the rest.
    pub(super) lines: Vec<String>,
}

/// Why a ref means nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stale {
    /// No snapshot was taken.
    NoSnapshot,
    /// It is from an earlier snapshot.
    Older,
    /// No snapshot has given it out yet.
    Unknown,
    /// The page has navigated since.
    Navigated,
}

impl Sight {
    /// A picture was handed out.
    pub(super) fn show(&mut self, picture: &Picture) {
        self.picture = Some(Frame {
            width: f64::from(picture.width),
            height: f64::from(picture.height),
            css_per_px: picture.css_per_px,
            origin: picture.origin,
        });
    }

    /// The pixels that an agent means: those of its last picture, or of the viewport where it has none.
    pub(super) fn frame(&self, viewport: Viewport) -> Frame {
        let (width, height) = viewport.pixels();
        self.picture.unwrap_or(Frame {
            width: f64::from(width),
            height: f64::from(height),
            css_per_px: 1.0 / viewport.scale,
            origin: None,
        })
    }

    /// The refs of a new snapshot begin here.
    pub(super) fn next_ref(&self) -> u64 {
        self.refs + 1
    }

    /// A snapshot was taken; the one before means nothing any more. Its name.
    pub(super) fn keep(&mut self, loader: String, nodes: Vec<i64>, lines: Vec<String>) -> String {
        let first = self.next_ref();
        self.refs += nodes.len() as u64;
        self.snapshots += 1;
        let name = format!("s{}", self.snapshots);
        self.snapshot = Some(Snapshot {
            loader,
            name: name.clone(),
            first,
            nodes,
            lines,
        });
        name
    }

    /// The last snapshot.
    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// The node of a ref, while the document of its snapshot is shown.
    pub(super) fn node(&self, number: u64, loader: &str) -> Result<i64, Stale> {
        let snapshot = self.snapshot.as_ref().ok_or(Stale::NoSnapshot)?;
        if number > self.refs || number == 0 {
            return Err(Stale::Unknown);
        }
        if snapshot.loader != loader {
            return Err(Stale::Navigated);
        }
        let index = number.checked_sub(snapshot.first).ok_or(Stale::Older)?;
        let index = usize::try_from(index).map_err(|_| Stale::Unknown)?;
        snapshot.nodes.get(index).copied().ok_or(Stale::Unknown)
    }
}

impl Frame {
    /// Where a pixel lies; `None` where it is outside the picture.
    pub(super) fn aim(&self, x: f64, y: f64, norm: bool) -> Option<Aim> {
        let (x, y) = if norm {
            (x * self.width, y * self.height)
        } else {
            (x, y)
        };
        let inside = (0.0..=self.width).contains(&x) && (0.0..=self.height).contains(&y);
        // The far edge of `norm` is the last pixel.
        let css = |px: f64, most: f64| px.min(most - 0.5).max(0.0) * self.css_per_px;
        let (x, y) = (css(x, self.width), css(y, self.height));
        inside.then_some(match self.origin {
            Some((left, top)) => Aim::Document(left + x, top + y),
            None => Aim::Viewport(x, y),
        })
    }

    /// CSS pixels of a distance.
    pub(super) fn distance(&self, by: [f64; 2], norm: bool) -> (f64, f64) {
        let [x, y] = by;
        if norm {
            (
                x * self.width * self.css_per_px,
                y * self.height * self.css_per_px,
            )
        } else {
            (x * self.css_per_px, y * self.css_per_px)
        }
    }

    /// The picture's pixel of a point of the viewport; of another part of the page there is none.
    pub(super) fn pixel(&self, x: f64, y: f64) -> Option<[f64; 2]> {
        let px = |css: f64| (css / self.css_per_px * 10.0).round() / 10.0;
        self.origin.is_none().then(|| [px(x), px(y)])
    }

    /// Its size, for a refusal.
    pub(super) fn size(&self) -> (f64, f64) {
        (self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn picture(origin: Option<(f64, f64)>) -> Picture {
        Picture {
            bytes: Bytes::new(),
            width: 200,
            height: 100,
            origin,
            css_per_px: 2.0,
        }
    }

    const VIEWPORT: Viewport = Viewport {
        width: 400,
        height: 200,
        scale: 2.0,
    };

    #[test]
    fn a_point_is_a_pixel_of_the_last_picture_or_of_the_viewport() {
        let mut sight = Sight::default();
        let aim = |sight: &Sight, x: f64, y: f64, norm: bool| sight.frame(VIEWPORT).aim(x, y, norm);
        assert_eq!(
            aim(&sight, 300.0, 100.0, false),
            Some(Aim::Viewport(150.0, 50.0))
        );
        sight.show(&picture(None));
        assert_eq!(
            aim(&sight, 100.0, 50.0, false),
            Some(Aim::Viewport(200.0, 100.0))
        );
        assert_eq!(
            aim(&sight, 0.5, 0.5, true),
            Some(Aim::Viewport(200.0, 100.0))
        );
        assert_eq!(
            aim(&sight, 1.0, 1.0, true),
            Some(Aim::Viewport(399.0, 199.0))
        );
        for (x, y, norm) in [
            (201.0, 50.0, false),
            (-1.0, 0.0, false),
            (1.1, 0.0, true),
            (f64::NAN, 0.0, false),
        ] {
            assert_eq!(aim(&sight, x, y, norm), None, "{x} {y}");
        }
        sight.show(&picture(Some((10.0, 1_000.0))));
        assert_eq!(
            aim(&sight, 100.0, 50.0, false),
            Some(Aim::Document(210.0, 1_100.0))
        );
    }

    #[test]
    fn a_ref_is_good_until_the_next_snapshot_or_document() {
        let mut sight = Sight::default();
        assert_eq!(sight.node(1, "L"), Err(Stale::NoSnapshot));
        assert_eq!(sight.keep("L".to_owned(), vec![70, 71], Vec::new()), "s1");
        assert_eq!((sight.node(1, "L"), sight.node(2, "L")), (Ok(70), Ok(71)));
        assert_eq!(sight.node(3, "L"), Err(Stale::Unknown));
        assert_eq!(sight.node(0, "L"), Err(Stale::Unknown));
        assert_eq!(sight.node(1, "L2"), Err(Stale::Navigated));
        assert_eq!(sight.keep("L".to_owned(), vec![70], Vec::new()), "s2");
        assert_eq!(sight.node(1, "L"), Err(Stale::Older));
        assert_eq!(sight.node(3, "L"), Ok(70));
    }
}
