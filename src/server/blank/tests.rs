use jpeg_encoder::{ColorType as JpegColor, Encoder as JpegEncoder, SamplingFactor};
use proptest::prelude::*;

use super::*;

/// A picture of one colour with a few pixels set to another.
fn pixels(width: usize, height: usize, dots: &[(usize, usize)], dot: [u8; 3]) -> Vec<u8> {
    let mut pixels = [200, 30, 90].repeat(width * height);
    for (x, y) in dots {
        let at = (y * width + x) * 3;
        pixels[at..at + 3].copy_from_slice(&dot);
    }
    pixels
}

fn png_of(
    width: u32,
    height: u32,
    color: png::ColorType,
    depth: png::BitDepth,
    data: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == png::ColorType::Indexed {
        encoder.set_palette(vec![0, 0, 0, 255, 255, 255]);
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(data).unwrap();
    writer.finish().unwrap();
    bytes
}

fn rgb_png(width: u32, height: u32, data: &[u8]) -> Vec<u8> {
    png_of(
        width,
        height,
        png::ColorType::Rgb,
        png::BitDepth::Eight,
        data,
    )
}

fn jpeg_of(width: u16, height: u16, data: &[u8], quality: u8, sampling: SamplingFactor) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new(&mut bytes, quality);
    encoder.set_sampling_factor(sampling);
    encoder.encode(data, width, height, JpegColor::Rgb).unwrap();
    bytes
}

fn webp_of(width: u32, height: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoder = image_webp::WebPEncoder::new(&mut bytes);
    encoder
        .encode(data, width, height, image_webp::ColorType::Rgb8)
        .unwrap();
    bytes
}

fn all_formats(width: u16, height: u16, data: &[u8]) -> [(Format, Vec<u8>); 3] {
    let (w, h) = (u32::from(width), u32::from(height));
    [
        (Format::Png, rgb_png(w, h, data)),
        (
            Format::Jpeg,
            jpeg_of(width, height, data, 90, SamplingFactor::R_4_2_0),
        ),
        (Format::Webp, webp_of(w, h, data)),
    ]
}

fn region(x: u32, y: u32, width: u32, height: u32) -> Region {
    Region {
        x,
        y,
        width,
        height,
    }
}

#[test]
fn one_colour_is_blank_in_every_format_and_its_twin_with_a_square_is_not() {
    let square: Vec<_> = (0..64).map(|n| (40 + n % 8, 20 + n / 8)).collect();
    for (format, bytes) in all_formats(70, 50, &pixels(70, 50, &[], [0; 3])) {
        assert_eq!(
            judge(&bytes, format, &[]).unwrap(),
            Verdict {
                whole: true,
                regions: vec![]
            },
            "{format:?}"
        );
    }
    let regions = [region(0, 0, 30, 50), region(30, 10, 30, 30)];
    for (format, bytes) in all_formats(70, 50, &pixels(70, 50, &square, [0; 3])) {
        let verdict = judge(&bytes, format, &regions).unwrap();
        assert_eq!(
            verdict,
            Verdict {
                whole: false,
                regions: vec![true, false]
            },
            "{format:?}"
        );
        assert!(!judge(&bytes, format, &[]).unwrap().whole, "{format:?}");
    }
}

#[test]
fn one_unit_in_the_last_pixel_of_a_png_counts() {
    let bytes = rgb_png(33, 17, &pixels(33, 17, &[(32, 16)], [200, 30, 91]));
    let regions = [
        region(0, 0, 33, 16),
        region(0, 0, 32, 17),
        region(32, 16, 1, 1),
        region(31, 16, 2, 1),
    ];
    let verdict = judge(&bytes, Format::Png, &regions).unwrap();
    assert_eq!(
        verdict,
        Verdict {
            whole: false,
            regions: vec![true, true, true, false]
        }
    );
}

#[test]
fn a_region_is_cut_at_the_border_and_one_outside_is_not_called_blank() {
    let bytes = rgb_png(10, 10, &pixels(10, 10, &[(0, 0)], [0; 3]));
    let rows = [
        (region(5, 5, 100, 100), true),
        (region(5, 5, u32::MAX, u32::MAX), true),
        (region(0, 0, u32::MAX, 1), false),
        (region(10, 0, 5, 5), false),
        (region(0, 10, 5, 5), false),
        (region(3, 3, 0, 5), false),
        (region(u32::MAX, u32::MAX, 9, 9), false),
    ];
    for (region, blank) in rows {
        assert_eq!(
            judge(&bytes, Format::Png, &[region]).unwrap().regions,
            [blank],
            "{region:?}"
        );
    }
}

#[test]
fn pngs_of_other_depths_are_judged_too() {
    use png::{BitDepth, ColorType};
    let rows = [
        (ColorType::Grayscale, BitDepth::One, vec![0xff, 0xff], true),
        (ColorType::Grayscale, BitDepth::One, vec![0xff, 0xfe], false),
        (ColorType::Indexed, BitDepth::Eight, vec![1; 16], true),
        (ColorType::Rgba, BitDepth::Eight, vec![7; 64], true),
        (ColorType::Rgba, BitDepth::Sixteen, vec![7; 128], true),
        (
            ColorType::Rgba,
            BitDepth::Sixteen,
            [vec![7; 127], vec![8]].concat(),
            false,
        ),
    ];
    for (color, depth, data, blank) in rows {
        let bytes = png_of(8, 2, color, depth, &data);
        assert_eq!(
            judge(&bytes, Format::Png, &[]).unwrap().whole,
            blank,
            "{color:?} {depth:?}"
        );
    }
}

#[test]
fn rows_after_the_deciding_one_are_not_read() {
    let noise: Vec<u8> = (0..64 * 512 * 3_u32)
        .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    let mut bytes = rgb_png(64, 512, &noise);
    bytes.truncate(bytes.len() / 2);
    assert!(!judge(&bytes, Format::Png, &[]).unwrap().whole);
    assert!(judge(&bytes, Format::Png, &[region(0, 511, 64, 1)]).is_err());
}

#[test]
fn no_picture_of_one_colour_is_beyond_the_bound() {
    let colors = [[255, 255, 255], [0, 0, 0], [200, 30, 90], [1, 254, 127]];
    for (width, height) in [(16_u16, 16_u16), (17, 33), (1_280, 720), (1_001, 999)] {
        for color in colors {
            let data = color.repeat(usize::from(width) * usize::from(height));
            for sampling in [SamplingFactor::R_4_4_4, SamplingFactor::R_4_2_0] {
                for quality in [1, 80, 100] {
                    let bytes = jpeg_of(width, height, &data, quality, sampling);
                    assert!(!is_beyond_one_color(
                        bytes.len(),
                        width.into(),
                        height.into()
                    ));
                    assert!(
                        judge(&bytes, Format::Jpeg, &[]).unwrap().whole,
                        "{color:?} {quality}"
                    );
                }
            }
        }
    }
}

/// What Chromium's own encoder makes of one colour: 16x16, quality 80.
#[test]
fn a_lossy_webp_of_one_colour_is_blank() {
    let bytes = include_bytes!("one-colour.webp");
    assert!(
        judge(bytes, Format::Webp, &[region(2, 2, 5, 5)])
            .unwrap()
            .whole
    );
}

#[test]
fn what_is_no_picture_is_an_error() {
    for format in [Format::Png, Format::Jpeg, Format::Webp] {
        assert!(judge(b"", format, &[]).is_err());
        assert!(judge(b"GIF89a", format, &[]).is_err());
    }
    for (format, bytes) in all_formats(70, 50, &pixels(70, 50, &[], [0; 3])) {
        assert!(judge(&bytes[..20], format, &[]).is_err(), "{format:?}");
    }
    let mut huge = rgb_png(8, 8, &pixels(8, 8, &[], [0; 3]));
    huge[16..24].copy_from_slice(&[0, 0, 0x7f, 0xff, 0, 0, 0x7f, 0xff]);
    assert!(judge(&huge, Format::Png, &[]).is_err());
}

proptest! {
    // A damaged header can claim 64 megapixels, which take their time to decode.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn judging_noise_or_a_damaged_picture_never_panics(
        noise in proptest::collection::vec(any::<u8>(), 0..300),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..10),
        at in (0_u32..80, 0_u32..80, any::<u32>(), any::<u32>()),
    ) {
        let regions = [region(at.0, at.1, at.2, at.3)];
        for (format, mut bytes) in all_formats(40, 30, &pixels(40, 30, &[(3, 3)], [0; 3])) {
            let _ = judge(&noise, format, &regions);
            for (index, byte) in &edits {
                let at = index.index(bytes.len());
                bytes[at] = *byte;
            }
            let _ = judge(&bytes, format, &regions);
        }
    }
}
