//! Joins the tiles of a picture that is larger than what the GPU can texture.

use bytes::Bytes;

use super::capture::Format;

/// JPEG's quality where the agent did not say: the one that Chromium takes.
const QUALITY: u32 = 80;
/// Pixels of a WebP's side: the format has 14 bits for it.
const WEBP_SIDE: u32 = 16_383;

/// Why tiles could not be joined.
#[derive(Debug, thiserror::Error)]
pub enum StitchError {
    /// A tile is no PNG that we know, or has another size than it should.
    #[error("a tile of the picture could not be read")]
    Tile,
    /// The format has no pictures of that size.
    #[error("a {format} cannot be {width} x {height} pixels")]
    Format {
        /// The format.
        format: &'static str,
        /// Pixels.
        width: u32,
        /// Pixels.
        height: u32,
    },
    /// The encoder failed.
    #[error("the joined picture could not be written")]
    Encode,
}

/// A picture in the making: three bytes a pixel.
pub(super) struct Canvas {
    width: usize,
    height: usize,
    rows: Vec<u8>,
}

impl Canvas {
    pub(super) fn new((width, height): (u32, u32)) -> Self {
        let (width, height) = (width as usize, height as usize);
        Self {
            width,
            height,
            rows: vec![0; width * height * 3],
        }
    }

    /// Puts a PNG where it belongs; what is beyond the border (a tile may be a pixel larger) is left out.
    pub(super) fn place(&mut self, left: u32, top: u32, tile: &[u8]) -> Result<(), StitchError> {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(tile));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().map_err(|_| StitchError::Tile)?;
        let channels = reader.output_color_type().0.samples();
        if channels < 3 {
            return Err(StitchError::Tile);
        }
        let (left, mut y) = (left as usize, top as usize);
        while let Some(row) = reader.next_row().map_err(|_| StitchError::Tile)? {
            if y >= self.height {
                break;
            }
            let line = &mut self.rows[y * self.width * 3..(y + 1) * self.width * 3];
            for (to, from) in line[left * 3..]
                .chunks_exact_mut(3)
                .zip(row.data().chunks_exact(channels))
            {
                to.copy_from_slice(&from[..3]);
            }
            y += 1;
        }
        Ok(())
    }

    /// The whole as a file. WebP comes lossless here: there is no lossy encoder outside the browser.
    pub(super) fn encode(
        &self,
        format: Format,
        quality: Option<u32>,
    ) -> Result<Bytes, StitchError> {
        let refuse = || StitchError::Format {
            format: format.name(),
            width: self.side(self.width),
            height: self.side(self.height),
        };
        let (width, height) = (self.side(self.width), self.side(self.height));
        let mut file = Vec::new();
        match format {
            Format::Png => self.encode_png(&mut file)?,
            Format::Jpeg => {
                let (width, height) = (
                    u16::try_from(width).map_err(|_| refuse())?,
                    u16::try_from(height).map_err(|_| refuse())?,
                );
                let quality = u8::try_from(quality.unwrap_or(QUALITY).clamp(1, 100)).unwrap_or(100);
                jpeg_encoder::Encoder::new(&mut file, quality)
                    .encode(&self.rows, width, height, jpeg_encoder::ColorType::Rgb)
                    .map_err(|_| StitchError::Encode)?;
            }
            Format::Webp if width.max(height) > WEBP_SIDE => return Err(refuse()),
            Format::Webp => image_webp::WebPEncoder::new(&mut file)
                .encode(&self.rows, width, height, image_webp::ColorType::Rgb8)
                .map_err(|_| StitchError::Encode)?,
        }
        Ok(file.into())
    }

    fn encode_png(&self, file: &mut Vec<u8>) -> Result<(), StitchError> {
        let mut encoder = png::Encoder::new(file, self.side(self.width), self.side(self.height));
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header().map_err(|_| StitchError::Encode)?;
        writer
            .write_image_data(&self.rows)
            .map_err(|_| StitchError::Encode)?;
        writer.finish().map_err(|_| StitchError::Encode)
    }

    fn side(&self, pixels: usize) -> u32 {
        u32::try_from(pixels).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(width: u32, height: u32, colour: [u8; 3]) -> Vec<u8> {
        let mut canvas = Canvas::new((width, height));
        canvas
            .rows
            .chunks_exact_mut(3)
            .for_each(|pixel| pixel.copy_from_slice(&colour));
        canvas.encode(Format::Png, None).unwrap().to_vec()
    }

    #[test]
    fn tiles_lie_where_they_belong_and_nothing_spills() {
        let mut canvas = Canvas::new((5, 4));
        for (left, top, width, height, colour) in [
            (0, 0, 3, 3, [9, 0, 0]),
            (3, 0, 3, 3, [0, 9, 0]),
            (0, 3, 3, 2, [0, 0, 9]),
            (3, 3, 2, 1, [9, 9, 9]),
        ] {
            canvas
                .place(left, top, &tile(width, height, colour))
                .unwrap();
        }
        let at = |x: usize, y: usize| &canvas.rows[(y * 5 + x) * 3..][..3];
        assert_eq!(
            [at(0, 0), at(2, 2), at(3, 0), at(4, 2)],
            [[9, 0, 0], [9, 0, 0], [0, 9, 0], [0, 9, 0]]
        );
        assert_eq!(
            [at(0, 3), at(2, 3), at(4, 3)],
            [[0, 0, 9], [0, 0, 9], [9, 9, 9]]
        );
    }

    #[test]
    fn a_format_says_which_sizes_it_has_not() {
        let wide = Canvas::new((WEBP_SIDE + 1, 1));
        assert!(matches!(
            wide.encode(Format::Webp, None),
            Err(StitchError::Format { format: "webp", .. })
        ));
        let wider = Canvas::new((65_536, 1));
        assert!(matches!(
            wider.encode(Format::Jpeg, None),
            Err(StitchError::Format { format: "jpeg", .. })
        ));
        assert!(Canvas::new((1, 1)).place(0, 0, b"no picture").is_err());
    }
}
