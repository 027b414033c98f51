//! Pixels: rectangles and words are put upon what is there, and an edge that divides a pixel takes its share of it.

use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};

/// So many pixels of the picture for each pixel of the drawing, both ways.
pub(super) const SCALE: f32 = 2.0;

/// Red, green and blue.
pub(super) type Colour = [u8; 3];

pub(super) struct Canvas {
    /// In bytes; three make a pixel.
    row: usize,
    bytes: Vec<u8>,
}

/// A face of DejaVu Sans, with the letters of ASCII and a few signs; `font/LICENSE` stands beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    Regular,
    Bold,
}

impl Canvas {
    /// Of so many pixels of the drawing.
    pub(super) fn new(width: usize, height: usize) -> Self {
        let row = width * SCALE as usize * 3;
        Self { row, bytes: vec![0xff; row * height * SCALE as usize] }
    }

    /// In pixels of the picture.
    pub(super) const fn width(&self) -> usize {
        self.row / 3
    }

    pub(super) fn rows(&self) -> std::slice::ChunksExact<'_, u8> {
        self.bytes.chunks_exact(self.row)
    }

    /// Fills from the left upper corner to the right lower one: left, top, right and bottom.
    pub(super) fn fill(&mut self, colour: Colour, corners: [f32; 4]) {
        let [left, top, right, bottom] = corners.map(|place| (place * SCALE).max(0.0));
        for y in top as usize..bottom.ceil() as usize {
            let high = share(y, top, bottom);
            for x in left as usize..right.ceil() as usize {
                self.blend(colour, x, y, share(x, left, right) * high);
            }
        }
    }

    /// Writes words, from the left end of their base line on.
    pub(super) fn write(&mut self, colour: Colour, face: Face, size: f32, (x, y): (f32, f32), words: &str) {
        let Some(font) = face.font() else { return };
        let font = font.as_scaled(scale(&font, size));
        let mut x = x * SCALE;
        let mut last = None;
        for letter in words.chars().map(|letter| font.glyph_id(letter)) {
            x += last.map_or(0.0, |last| font.kern(last, letter));
            let glyph = letter.with_scale_and_position(font.scale(), point(x, y * SCALE));
            if let Some(outline) = font.outline_glyph(glyph) {
                let (left, top) = (outline.px_bounds().min.x, outline.px_bounds().min.y);
                outline.draw(|across, down, share| {
                    let (x, y) = (left + across as f32, top + down as f32);
                    if x >= 0.0 && y >= 0.0 {
                        self.blend(colour, x as usize, y as usize, share);
                    }
                });
            }
            x += font.h_advance(letter);
            last = Some(letter);
        }
    }

    /// Mixes a share of a colour into a pixel; none outside of the picture.
    fn blend(&mut self, colour: Colour, x: usize, y: usize, share: f32) {
        if x >= self.width() {
            return;
        }
        let at = y * self.row + x * 3;
        let Some(pixel) = self.bytes.get_mut(at..at + 3) else { return };
        for (there, new) in pixel.iter_mut().zip(colour) {
            let mixed = f32::from(*there) + (f32::from(new) - f32::from(*there)) * share.clamp(0.0, 1.0);
            *there = mixed.round() as u8;
        }
    }
}

/// How much of a pixel lies between two places.
fn share(pixel: usize, from: f32, to: f32) -> f32 {
    ((pixel + 1) as f32).min(to) - (pixel as f32).max(from)
}

/// The scale at which the letters are of this size, which is measured as browsers do.
fn scale(font: &FontRef<'_>, size: f32) -> PxScale {
    let units = font.units_per_em().unwrap_or(1.0);
    PxScale::from(size * SCALE * font.height_unscaled() / units)
}

impl Face {
    /// The width of words, in pixels of the drawing.
    pub(super) fn width(self, words: &str, size: f32) -> f32 {
        let Some(font) = self.font() else { return 0.0 };
        let font = font.as_scaled(scale(&font, size));
        let (mut width, mut last) = (0.0, None);
        for letter in words.chars().map(|letter| font.glyph_id(letter)) {
            width += last.map_or(0.0, |last| font.kern(last, letter)) + font.h_advance(letter);
            last = Some(letter);
        }
        width / SCALE
    }

    /// The font, which is part of the program and so is never missing.
    fn font(self) -> Option<FontRef<'static>> {
        let bytes: &[u8] = match self {
            Self::Regular => include_bytes!("font/sans.ttf"),
            Self::Bold => include_bytes!("font/sans-bold.ttf"),
        };
        FontRef::try_from_slice(bytes).ok()
    }
}
