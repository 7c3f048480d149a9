//! The Mandelbrot set, row by row, as a PNG file, for `mandelbrot` and `render_server`.
//!
//! Nothing here uses fork-join. A row depends on no other one, so the caller decides which rows are
//! drawn in parallel.

use std::{fmt, str::FromStr};

/// Bytes of a pixel: red, green, blue.
const PIXEL: usize = 3;
/// The number of iterations after which a point counts as one of the set. Picked: at the sizes that
/// fit on a screen, more would make no visible difference.
const ITERATIONS: u32 = 256;
/// The most pixels of a picture, 192 MiB in bytes, which a small machine has.
const MOST: u64 = 1 << 26;

/// Width and height in pixels; neither is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    width: u32,
    height: u32,
}

impl FromStr for Size {
    type Err = String;

    /// Parses `640x480`.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('x').and_then(|(width, height)| {
            Some((width.parse().ok()?, height.parse().ok()?)).filter(|&(w, h)| w > 0 && h > 0)
        });
        let Some((width, height)) = numbers else {
            return Err(format!("`{text}` is no size: write width and height, as in 640x480"));
        };
        if u64::from(width) * u64::from(height) > MOST {
            return Err(format!("`{text}` is too large: use at most {MOST} pixels"));
        }
        Ok(Self { width, height })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

impl Size {
    /// Returns a black picture.
    pub fn blank(self) -> Vec<u8> {
        vec![0; self.pixels() * PIXEL]
    }

    /// Returns the number of pixels.
    pub fn pixels(self) -> usize {
        self.width as usize * self.height as usize
    }

    /// Returns the number of bytes in a row.
    pub fn row_bytes(self) -> usize {
        self.width as usize * PIXEL
    }

    /// Draws the row `y`, counted from the top, into its bytes.
    pub fn draw_row(self, y: usize, row: &mut [u8]) {
        // As large as fits: the set lies within 3 by 2.5 around -0.75.
        let step = (3.0 / f64::from(self.width)).max(2.5 / f64::from(self.height));
        // From the middle, so that a row and its mirror image have the same numbers but for a sign.
        let from_middle = |at: usize, of: u32| (at as f64 - f64::from(of - 1) / 2.0) * step;
        let imaginary = from_middle(y, self.height);
        for (x, pixel) in row.chunks_exact_mut(PIXEL).enumerate() {
            let real = from_middle(x, self.width) - 0.75;
            pixel.copy_from_slice(&colour(iterations(real, imaginary)));
        }
    }

    /// Returns true if the lower half of a picture mirrors the upper one, as that of the set does.
    /// This detects a row that was left out, or drawn in another's place.
    pub fn is_mirrored(self, pixels: &[u8]) -> bool {
        let rows = || pixels.chunks_exact(self.row_bytes());
        rows().len() == self.height as usize && rows().eq(rows().rev())
    }

    /// Encodes the picture as a PNG file.
    ///
    /// # Errors
    ///
    /// Returns an error if the number of `pixels` does not match the size.
    pub fn encode(self, pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(pixels)?;
        writer.finish()?;
        Ok(file)
    }
}

/// Returns the number of steps after which the point escapes; `None` if it does not.
fn iterations(real: f64, imaginary: f64) -> Option<u32> {
    let (mut x, mut y) = (0.0, 0.0);
    (0..ITERATIONS).find(|_| {
        (x, y) = (x * x - y * y + real, 2.0 * x * y + imaginary);
        x * x + y * y > 4.0
    })
}

/// Returns the colour: black for the set, and around it the brighter the closer.
fn colour(escaped: Option<u32>) -> [u8; PIXEL] {
    let Some(steps) = escaped else { return [0; PIXEL] };
    let near = f64::from(steps + 1) / f64::from(ITERATIONS);
    // Most points escape after a few steps; roots spread those.
    [near.sqrt(), near.cbrt(), near.powf(0.25)].map(|part| (part * 255.0) as u8)
}

#[cfg(test)]
mod tests {
    use super::{Size, iterations};

    fn drawn(size: Size) -> Vec<u8> {
        let mut pixels = size.blank();
        for (y, row) in pixels.chunks_exact_mut(size.row_bytes()).enumerate() {
            size.draw_row(y, row);
        }
        pixels
    }

    #[test]
    fn points_are_in_the_set_or_not() {
        for (real, imaginary) in [(0.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (-2.0, 0.0)] {
            assert_eq!(iterations(real, imaginary), None, "{real} {imaginary}");
        }
        assert_eq!(iterations(3.0, 0.0), Some(0));
        assert!(iterations(0.5, 0.5).is_some());
    }

    #[test]
    fn a_row_in_anothers_place_is_no_mirror_image() {
        for size in ["1x1", "7x6", "40x31"] {
            let size: Size = size.parse().unwrap();
            assert!(size.is_mirrored(&drawn(size)), "{size}");
        }
        let size: Size = "40x31".parse().unwrap();
        let (mut left_out, row) = (drawn(size), size.row_bytes());
        left_out[3 * row..4 * row].fill(0);
        assert!(!size.is_mirrored(&left_out));
        assert!(!size.is_mirrored(&drawn(size)[row..]), "too few rows");
    }

    #[test]
    fn what_is_no_size_is_refused_with_an_example() {
        for wrong in ["", "x", "10", "0x5", "5x0", "-1x5", "5x5x5", "99999999999x1"] {
            let said = wrong.parse::<Size>().unwrap_err();
            assert!(said.contains(&format!("`{wrong}`")) && said.contains("640x480"), "{said}");
        }
        assert!("100000x100000".parse::<Size>().unwrap_err().contains("too large"));
    }
}
