//! Whether a picture, or a region of it such as a canvas, is blank: all its pixels have one colour.
//!
//! A page that failed to draw gives a picture that is white or black, and an agent without eyes believes it. So each
//! picture is judged by its pixels. That must cost next to nothing for the usual picture, which is not blank: a PNG is
//! read row by row and given up at the row that decides; a JPEG or WebP that is larger than one colour can be is not
//! decoded at all, unless there are regions to judge. Where it is decoded, that takes milliseconds: not for an async
//! thread.

use std::io::Cursor;

use image_webp::WebPDecoder;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::browser::capture::Format;
use crate::policy::limits::{
    BLANK_EDGE, BLANK_EDGE_TOLERANCE, BLANK_TOLERANCE, KIB, PICTURE_PIXELS,
};

/// A rectangle of the picture, in its pixels; what lies beyond the border is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The left edge.
    pub x: u32,
    /// The upper edge.
    pub y: u32,
    /// Pixels to the right.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
}

/// What is blank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the whole picture is.
    pub whole: bool,
    /// Whether each region is, in the order they were given. A region that has no pixel in the picture is not: nothing
    /// is known of it.
    pub regions: Vec<bool>,
}

/// Why a picture could not be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlankError {
    /// The bytes are no picture of this format.
    #[error("the picture cannot be decoded: {0}")]
    Corrupt(String),
    /// A kind of picture that Chromium does not make.
    #[error("the picture is {0}")]
    Unsupported(&'static str),
}

/// Judges a picture and regions of it. For PNG one colour means equal pixels, for the lossy formats pixels within
/// [`BLANK_TOLERANCE`].
pub fn judge(picture: &[u8], format: Format, regions: &[Region]) -> Result<Verdict, BlankError> {
    match format {
        Format::Png => png(picture, regions),
        Format::Jpeg => jpeg(picture, regions),
        Format::Webp => webp(picture, regions),
    }
}

/// Reads rows until all is decided; memory is one row and the inflater's window.
fn png(picture: &[u8], regions: &[Region]) -> Result<Verdict, BlankError> {
    let mut decoder = png::Decoder::new(Cursor::new(picture));
    // A palette and pixels below a byte become whole bytes, so that pixels can be compared as slices.
    decoder.set_transformations(png::Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    // The picture comes from Chromium over a socket pair; a checksum would only cost its time.
    decoder.ignore_checksums(true);
    let mut reader = decoder.read_info().map_err(corrupt)?;
    let (width, height) = reader.info().size();
    check_size(u64::from(width), u64::from(height))?;
    if reader.info().interlaced {
        return Err(BlankError::Unsupported("interlaced"));
    }
    let (color, depth) = reader.output_color_type();
    let pixel = color.samples()
        * if depth == png::BitDepth::Sixteen {
            2
        } else {
            1
        };
    let mut judging = Judging::new(width, height, pixel, 0, regions);
    for y in 0..height {
        let row = reader.next_row().map_err(corrupt)?;
        let row = row.ok_or_else(|| corrupt("rows are missing"))?;
        if judging.row(y, row.data()) {
            break;
        }
    }
    Ok(judging.verdict())
}

fn jpeg(picture: &[u8], regions: &[Region]) -> Result<Verdict, BlankError> {
    // The decoder's own bounds are below the side of a tall page; its pixels are bounded by `check_size`.
    let options = DecoderOptions::default()
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(picture), options);
    decoder.decode_headers().map_err(corrupt)?;
    let info = decoder.info().ok_or_else(|| corrupt("no header"))?;
    let (width, height) = (u32::from(info.width), u32::from(info.height));
    check_size(width.into(), height.into())?;
    if regions.is_empty() && is_beyond_one_color(picture.len(), width, height) {
        return Ok(NOT_BLANK);
    }
    let pixels = decoder.decode().map_err(corrupt)?;
    Ok(decoded(&pixels, width, height, 3, regions))
}

fn webp(picture: &[u8], regions: &[Region]) -> Result<Verdict, BlankError> {
    let mut decoder = WebPDecoder::new(Cursor::new(picture)).map_err(corrupt)?;
    let (width, height) = decoder.dimensions();
    check_size(width.into(), height.into())?;
    if decoder.is_animated() {
        return Err(BlankError::Unsupported("animated"));
    }
    if regions.is_empty() && is_beyond_one_color(picture.len(), width, height) {
        return Ok(NOT_BLANK);
    }
    let bytes = decoder
        .output_buffer_size()
        .ok_or_else(|| corrupt("too large"))?;
    let mut pixels = vec![0; bytes];
    decoder.read_image(&mut pixels).map_err(corrupt)?;
    let pixel = if decoder.has_alpha() { 4 } else { 3 };
    Ok(decoded(&pixels, width, height, pixel, regions))
}

const NOT_BLANK: Verdict = Verdict {
    whole: false,
    regions: Vec::new(),
};

/// Whether a JPEG or WebP of this size is larger than one of a single colour can be.
///
/// In a JPEG of one colour every block after the first says "same as before, and nothing more". With the standard
/// tables that takes 6 bits for a block of brightness and 4 for one of colour: without subsampling, the worst case,
/// 14 bits for 8x8 pixels, or 7 bytes for 16x16; optimised tables take less. In a lossy WebP a macroblock of 16x16 that
/// is predicted and skipped takes its segment, its skip flag and two modes, below 2 bytes even when the encoder adapts
/// nothing; a lossless one takes a few bytes in all. So 8 bytes for each 16x16 begun, and 4 KiB for headers and tables,
/// are beyond both: Chromium's own take 1.5 and 0.5 bytes and below 1 KiB. A picture of one colour is never called otherwise; one that is below the bound is decoded.
fn is_beyond_one_color(bytes: usize, width: u32, height: u32) -> bool {
    let blocks = u64::from(width.div_ceil(16)) * u64::from(height.div_ceil(16));
    bytes as u64 > 4 * KIB as u64 + 8 * blocks
}

fn check_size(width: u64, height: u64) -> Result<(), BlankError> {
    match width * height {
        0 => Err(BlankError::Unsupported("empty")),
        1..=PICTURE_PIXELS => Ok(()),
        _ => Err(BlankError::Unsupported("larger than any picture of ours")),
    }
}

fn corrupt(error: impl std::fmt::Display) -> BlankError {
    BlankError::Corrupt(error.to_string().chars().take(200).collect())
}

/// Judges a lossy picture. What is around a region comes over its border, so more is forgiven there.
fn decoded(pixels: &[u8], width: u32, height: u32, pixel: usize, regions: &[Region]) -> Verdict {
    let judged = |tolerance, regions: &[Region]| {
        let mut judging = Judging::new(width, height, pixel, tolerance, regions);
        let rows = pixels.chunks_exact(width as usize * pixel);
        for (y, row) in (0..height).zip(rows) {
            if judging.row(y, row) {
                break;
            }
        }
        judging.verdict()
    };
    let inner: Vec<Region> = regions.iter().map(Region::inner).collect();
    let mut verdict = judged(BLANK_TOLERANCE, &inner);
    if verdict.regions.contains(&true) {
        let outer = judged(BLANK_EDGE_TOLERANCE, regions);
        for (inner, outer) in verdict.regions.iter_mut().zip(outer.regions) {
            *inner &= outer;
        }
    }
    verdict
}

impl Region {
    /// Without its border, where it has more than that.
    fn inner(&self) -> Self {
        if self.width.min(self.height) <= 2 * BLANK_EDGE {
            return *self;
        }
        Self {
            x: self.x + BLANK_EDGE,
            y: self.y + BLANK_EDGE,
            width: self.width - 2 * BLANK_EDGE,
            height: self.height - 2 * BLANK_EDGE,
        }
    }
}

/// The whole and the regions while rows come in.
struct Judging {
    /// Bytes of a pixel.
    pixel: usize,
    tolerance: u8,
    /// The whole first, then the regions.
    areas: Vec<Area>,
}

/// A rectangle inside the picture, and what is known of it.
struct Area {
    columns: std::ops::Range<usize>,
    rows: std::ops::Range<u32>,
    seen: Seen,
}

enum Seen {
    Nothing,
    /// Only pixels like this one; at most 4 samples of 16 bits.
    One([u8; 8]),
    Several,
}

impl Judging {
    fn new(width: u32, height: u32, pixel: usize, tolerance: u8, regions: &[Region]) -> Self {
        let whole = Region {
            x: 0,
            y: 0,
            width,
            height,
        };
        let areas = std::iter::once(&whole).chain(regions).map(|region| Area {
            columns: region.x.min(width) as usize
                ..region.x.saturating_add(region.width).min(width) as usize,
            rows: region.y.min(height)..region.y.saturating_add(region.height).min(height),
            seen: Seen::Nothing,
        });
        Self {
            pixel,
            tolerance,
            areas: areas.collect(),
        }
    }

    /// Takes a row; true once no later row can change the verdict.
    fn row(&mut self, y: u32, row: &[u8]) -> bool {
        let mut decided = true;
        for area in &mut self.areas {
            area.row(y, row, self.pixel, self.tolerance);
            decided &= matches!(area.seen, Seen::Several)
                || area.rows.end <= y + 1
                || area.columns.is_empty();
        }
        decided
    }

    fn verdict(&self) -> Verdict {
        let mut blank = self
            .areas
            .iter()
            .map(|area| matches!(area.seen, Seen::One(_)));
        Verdict {
            whole: blank.next().unwrap_or(false),
            regions: blank.collect(),
        }
    }
}

impl Area {
    fn row(&mut self, y: u32, row: &[u8], pixel: usize, tolerance: u8) {
        if matches!(self.seen, Seen::Several) || !self.rows.contains(&y) {
            return;
        }
        let Some(part) = row.get(self.columns.start * pixel..self.columns.end * pixel) else {
            return;
        };
        let Some(first) = part.get(..pixel) else {
            return;
        };
        let mut like = match self.seen {
            Seen::One(like) => like,
            _ => [0; 8],
        };
        if matches!(self.seen, Seen::Nothing) {
            like[..pixel].copy_from_slice(first);
        }
        let same = if tolerance == 0 {
            // A row equal to itself one pixel on has one colour; comparing slices is as fast as memory is.
            first == &like[..pixel] && part[pixel..] == part[..part.len() - pixel]
        } else {
            part.chunks_exact(pixel)
                .all(|other| is_near(other, &like[..pixel], tolerance))
        };
        self.seen = if same { Seen::One(like) } else { Seen::Several };
    }
}

fn is_near(one: &[u8], other: &[u8], tolerance: u8) -> bool {
    one.iter()
        .zip(other)
        .all(|(a, b)| a.abs_diff(*b) <= tolerance)
}

#[cfg(test)]
mod tests;
