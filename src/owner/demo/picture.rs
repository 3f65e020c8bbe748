//! Whether a picture of the demo is true: patches of exact colours in its corners, and a scene between them.

use std::collections::BTreeSet;
use std::io::Cursor;

/// Pixels of a patch's side. The pages draw them with the same number.
const PATCH: usize = 64;
/// The patches' colours: above left, above right, below left, below right.
const COLOURS: [[u8; 3]; 4] = [
    [230, 57, 70],
    [42, 157, 143],
    [69, 123, 157],
    [233, 196, 106],
];
/// Different colours that the middle row has at least: a scene that was not drawn has one.
const SCENE_COLOURS: usize = 64;

/// Reads a PNG row by row; the error says what is wrong, and where.
pub(super) fn check(picture: &[u8], width: u32, height: u32) -> Result<(), String> {
    let unreadable = |error: png::DecodingError| format!("it is no PNG: {error}");
    let mut decoder = png::Decoder::new(Cursor::new(picture));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(unreadable)?;
    let size = reader.info().size();
    if size != (width, height) {
        let (wide, high) = size;
        return Err(format!("it is {wide}x{high}, not {width}x{height}"));
    }
    let channels = reader.output_color_type().0.samples();
    let rows = height as usize;
    for y in 0..rows {
        let row = reader.next_row().map_err(unreadable)?;
        let row = row.ok_or("it ends early")?;
        let pixels: Vec<&[u8]> = row.data().chunks_exact(channels).collect();
        if y < PATCH {
            check_patches(&pixels, y, COLOURS[0], COLOURS[1])?;
        } else if y >= rows - PATCH {
            check_patches(&pixels, y, COLOURS[2], COLOURS[3])?;
        } else if y == rows / 2 {
            check_scene(&pixels)?;
        }
    }
    Ok(())
}

fn check_patches(row: &[&[u8]], y: usize, left: [u8; 3], right: [u8; 3]) -> Result<(), String> {
    let last = row.len() - PATCH;
    let patches = [(0..PATCH, left), (last..row.len(), right)];
    for (x, colour) in patches
        .into_iter()
        .flat_map(|(span, colour)| span.map(move |x| (x, colour)))
    {
        if row[x].get(..3) != Some(&colour) {
            let seen = row[x];
            return Err(format!(
                "pixel {x},{y} is {seen:?} where {colour:?} was drawn"
            ));
        }
    }
    Ok(())
}

fn check_scene(row: &[&[u8]]) -> Result<(), String> {
    let colours = row.iter().collect::<BTreeSet<_>>().len();
    if colours < SCENE_COLOURS {
        return Err(format!(
            "its middle row has {colours} colours; the scene was not drawn"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE: u32 = 200;

    /// A picture with its patches, and a ramp between them; then one pixel is another.
    fn drawn(changed: Option<(u32, u32)>, is_flat: bool) -> Vec<u8> {
        let patch = u32::try_from(PATCH).unwrap();
        let mut pixels = Vec::new();
        for (y, x) in (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| (y, x))) {
            let row = [y < patch, y >= SIDE - patch];
            let column = [x < patch, x >= SIDE - patch];
            let colour = match (row, column) {
                ([true, _], [true, _]) => COLOURS[0],
                ([true, _], [_, true]) => COLOURS[1],
                ([_, true], [true, _]) => COLOURS[2],
                ([_, true], [_, true]) => COLOURS[3],
                _ if is_flat => [0; 3],
                _ => [u8::try_from(x).unwrap(), 0, 0],
            };
            let off = u8::from(changed == Some((x, y)));
            pixels.extend([colour[0] ^ off, colour[1], colour[2]]);
        }
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, SIDE, SIDE);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&pixels).unwrap();
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn a_true_picture_passes_and_one_wrong_pixel_of_a_patch_does_not() {
        assert_eq!(check(&drawn(None, false), SIDE, SIDE), Ok(()));
        for at in [(0, 0), (63, 63), (199, 0), (136, 63), (0, 199), (199, 136)] {
            let wrong = check(&drawn(Some(at), false), SIDE, SIDE).unwrap_err();
            assert!(wrong.contains(&format!("{},{}", at.0, at.1)), "{wrong}");
        }
        assert_eq!(check(&drawn(Some((100, 20)), false), SIDE, SIDE), Ok(()));
    }

    #[test]
    fn a_flat_a_small_and_a_cut_picture_are_told_apart() {
        let wrong = |bytes: &[u8], side| check(bytes, side, SIDE).unwrap_err();
        assert!(wrong(&drawn(None, true), SIDE).contains("not drawn"));
        assert!(wrong(&drawn(None, false), 300).contains("200x200"));
        let whole = drawn(None, false);
        wrong(&whole[..whole.len() / 2], SIDE);
        assert!(wrong(b"no", SIDE).contains("no PNG"));
    }
}
