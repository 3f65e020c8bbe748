//! Pictures as an agent gets them: shot, fetched part by part, joined, decoded.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::daemon::Daemon;

pub(crate) const RED: [u8; 3] = [255, 0, 0];

/// A picture and the receipt that came with it.
pub(crate) struct Shot {
    pub(crate) receipt: Value,
    pub(crate) width: usize,
    pub(crate) height: usize,
    rgb: Vec<u8>,
}

impl Shot {
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    pub(crate) fn at(&self, x: usize, y: usize) -> [u8; 3] {
        assert!(
            x < self.width && y < self.height,
            "({x}, {y}) of {:?}",
            self.size()
        );
        let start = (y * self.width + x) * 3;
        self.rgb[start..start + 3].try_into().unwrap()
    }

    /// Whether a pixel has a colour, or one near it.
    pub(crate) fn near(&self, (x, y): (usize, usize), colour: [u8; 3], tolerance: u8) -> bool {
        self.at(x, y)
            .iter()
            .zip(colour)
            .all(|(is, should)| is.abs_diff(should) <= tolerance)
    }
}

/// Takes a picture, and holds what was fetched against the receipt.
pub(crate) async fn shoot(daemon: &Daemon, body: Value) -> Shot {
    let receipt = daemon.ok("screenshot", body).await;
    let file = fetch(daemon, &receipt).await;
    decode(receipt, &file)
}

/// The file of a receipt: its parts, joined.
pub(crate) async fn fetch(daemon: &Daemon, receipt: &Value) -> Vec<u8> {
    let mut file = Vec::new();
    for part in 1..=receipt["parts"].as_u64().unwrap() {
        let body = json!({"image": receipt["image"], "part": part}).to_string();
        let reply = daemon.send(Method::POST, "image", body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        file.extend(BASE64_STANDARD.decode(reply.text()).unwrap());
    }
    assert_eq!(receipt["bytes"], file.len());
    assert_eq!(receipt["sha256"], sha256(&file), "{receipt}");
    file
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Decodes a file in the format that its receipt names.
pub(crate) fn decode(receipt: Value, file: &[u8]) -> Shot {
    let (width, height, rgb) = match receipt["format"].as_str().unwrap() {
        "png" => png(file),
        "jpeg" => jpeg(file),
        "webp" => webp(file),
        other => panic!("{other}"),
    };
    assert_eq!(
        (&receipt["width"], &receipt["height"]),
        (&json!(width), &json!(height))
    );
    Shot {
        receipt,
        width,
        height,
        rgb,
    }
}

fn png(file: &[u8]) -> (usize, usize, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(file))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(info.bit_depth, png::BitDepth::Eight);
    let rgb = match info.color_type {
        png::ColorType::Rgb => pixels,
        png::ColorType::Rgba => opaque(&pixels),
        other => panic!("{other:?}"),
    };
    (info.width as usize, info.height as usize, rgb)
}

fn jpeg(file: &[u8]) -> (usize, usize, Vec<u8>) {
    let sides = DecoderOptions::default()
        .set_max_width(65_535)
        .set_max_height(65_535);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(file), sides);
    let rgb = decoder.decode().unwrap();
    let (width, height) = decoder.dimensions().unwrap();
    (width, height, rgb)
}

fn webp(file: &[u8]) -> (usize, usize, Vec<u8>) {
    let mut decoder = image_webp::WebPDecoder::new(std::io::Cursor::new(file)).unwrap();
    let (width, height) = decoder.dimensions();
    let mut pixels = vec![0; decoder.output_buffer_size().unwrap()];
    decoder.read_image(&mut pixels).unwrap();
    let rgb = if decoder.has_alpha() {
        opaque(&pixels)
    } else {
        pixels
    };
    (width as usize, height as usize, rgb)
}

/// A page's picture has no holes.
fn opaque(rgba: &[u8]) -> Vec<u8> {
    assert!(rgba.chunks_exact(4).all(|pixel| pixel[3] == 255));
    rgba.chunks_exact(4)
        .flat_map(|pixel| &pixel[..3])
        .copied()
        .collect()
}
