//! A plot as PNG, for where SVG does not go: drawn by hand too, twice as large, in light colours.
//!
//! Everything but the words is made of rectangles. The words come from a font that is part of the program, so that the
//! picture is the same on a machine without fonts.

use std::io::{self, Write as _};

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

use super::canvas::{Canvas, Colour, Face, SCALE};
use super::drawing::{Anchor, At, Drawing, Ink, Shape, Steps};
use super::{Bars, Plot};

/// The dashes of the limit's line, and the gaps between them, in pixels.
const DASH: (f32, f32) = (6.0, 4.0);

impl Plot {
    /// The plot as a PNG picture of 1,920 pixels across.
    #[must_use]
    pub fn to_png(&self) -> Vec<u8> {
        to_png(&self.drawing())
    }
}

impl Bars {
    /// The bars as a PNG picture of 1,920 pixels across.
    #[must_use]
    pub fn to_png(&self) -> Vec<u8> {
        to_png(&self.drawing())
    }
}

fn to_png(drawing: &Drawing) -> Vec<u8> {
    let mut canvas = Canvas::new(drawing.width as usize, drawing.height as usize);
    drawing.shapes.iter().for_each(|shape| put(&mut canvas, shape));
    // Writing to memory cannot fail.
    encode(&canvas).unwrap_or_default()
}

fn put(canvas: &mut Canvas, shape: &Shape) {
    match shape {
        Shape::Rect { ink, x, y, width, height } => {
            let [x, y, width, height] = [x, y, width, height].map(|pixels| *pixels as f32);
            canvas.fill(colour(*ink), [x, y, x + width, y + height]);
        }
        Shape::Line { ink, from, to } => line(canvas, *ink, *from, *to),
        Shape::Area { ink, floor, steps } => {
            for step in steps.each().filter(|step| step.y != *floor) {
                canvas.fill(colour(*ink), [snapped(step.left), pixels(step.y), snapped(step.right), pixels(*floor)]);
            }
        }
        Shape::Outline { ink, from, steps } => outline(canvas, *ink, *from, steps),
        Shape::Bars { ink, bars } => {
            for [x, y, width, height] in bars {
                let (left, right) = (snapped(*x), snapped(At(x.0 + width.0)));
                canvas.fill(colour(*ink), [left, pixels(*y), right, pixels(*y) + pixels(*height)]);
            }
        }
        Shape::Text { ink, anchor, x, y, words } => {
            let (face, size) = face(*ink);
            let left = match anchor {
                Anchor::Start => *x as f32,
                Anchor::Middle => *x as f32 - face.width(words, size) / 2.0,
                Anchor::End => *x as f32 - face.width(words, size),
            };
            canvas.write(colour(*ink), face, size, (left, pixels(*y)), words);
        }
    }
}

fn line(canvas: &mut Canvas, ink: Ink, from: (At, At), to: (At, At)) {
    let half = thickness(ink) / 2.0;
    let (left, top, right, bottom) = (pixels(from.0), pixels(from.1), pixels(to.0), pixels(to.1));
    if ink != Ink::Limit {
        let (across, down) = if top == bottom { (0.0, half) } else { (half, 0.0) };
        return canvas.fill(colour(ink), [left - across, top - down, right + across, bottom + down]);
    }
    let mut x = left;
    while x < right {
        canvas.fill(colour(ink), [x, top - half, (x + DASH.0).min(right), top + half]);
        x += DASH.0 + DASH.1;
    }
}

fn outline(canvas: &mut Canvas, ink: Ink, from: At, steps: &Steps) {
    let (half, mut last) = (thickness(ink) / 2.0, pixels(from));
    for step in steps.each() {
        let (left, right, y) = (snapped(step.left), snapped(step.right), pixels(step.y));
        canvas.fill(colour(ink), [left - half, y.min(last) - half, left + half, y.max(last) + half]);
        canvas.fill(colour(ink), [left + half, y - half, right + half, y + half]);
        last = y;
    }
}

fn pixels(at: At) -> f32 {
    at.0 as f32 / 10.0
}

/// On an edge between two pixels of the picture, so that what stands side by side has no seam.
fn snapped(at: At) -> f32 {
    (pixels(at) * SCALE).round() / SCALE
}

fn thickness(ink: Ink) -> f32 {
    match ink {
        Ink::Edge => 2.0,
        Ink::Limit => 1.5,
        Ink::Level => 1.6,
        _ => 1.0,
    }
}

/// The light colours of the SVG picture.
fn colour(ink: Ink) -> Colour {
    match ink {
        Ink::Paper => [0xff, 0xff, 0xff],
        Ink::Plate => [0xf6, 0xf8, 0xfa],
        Ink::Area => [0x9e, 0xc5, 0xf0],
        Ink::Edge | Ink::Passed => [0x1f, 0x6f, 0xeb],
        Ink::Over | Ink::Denied => [0xe5, 0x53, 0x4b],
        Ink::Limit | Ink::Title | Ink::PanelTitle | Ink::Word => [0x24, 0x29, 0x2f],
        Ink::Tick => [0xd0, 0xd7, 0xde],
        Ink::Level => [0xb0, 0x88, 0x00],
        Ink::DimWord => [0x57, 0x60, 0x6a],
        Ink::BadWord => [0xb4, 0x23, 0x18],
    }
}

/// The face of words, and their size in pixels.
fn face(ink: Ink) -> (Face, f32) {
    match ink {
        Ink::Title => (Face::Bold, 20.0),
        Ink::PanelTitle => (Face::Bold, 15.0),
        Ink::BadWord => (Face::Bold, 13.0),
        _ => (Face::Regular, 13.0),
    }
}

/// PNG (ISO/IEC 15948): a signature and three chunks. Colours are of eight bits; each row is written as what it
/// differs by from the row above (filter 2), which is little.
fn encode(canvas: &Canvas) -> io::Result<Vec<u8>> {
    let (width, rows) = (canvas.width(), canvas.rows());
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let height = rows.clone().count();
    let mut header = Vec::new();
    header.extend_from_slice(&(width as u32).to_be_bytes());
    header.extend_from_slice(&(height as u32).to_be_bytes());
    // Eight bits, three colours, and the one way there is to compress, filter and interlace.
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    chunk(&mut png, b"IHDR", &header);
    let mut pixels = ZlibEncoder::new(Vec::new(), Compression::best());
    let mut above = vec![0; width * 3];
    for row in rows {
        let differences: Vec<u8> = row.iter().zip(&above).map(|(here, above)| here.wrapping_sub(*above)).collect();
        pixels.write_all(&[2])?;
        pixels.write_all(&differences)?;
        above.copy_from_slice(row);
    }
    chunk(&mut png, b"IDAT", &pixels.finish()?);
    chunk(&mut png, b"IEND", &[]);
    Ok(png)
}

fn chunk(png: &mut Vec<u8>, name: &[u8; 4], content: &[u8]) {
    let mut crc = Crc::new();
    crc.update(name);
    crc.update(content);
    // A picture of a few thousand rows is far below 4 GiB.
    png.extend_from_slice(&(content.len() as u32).to_be_bytes());
    png.extend_from_slice(name);
    png.extend_from_slice(content);
    png.extend_from_slice(&crc.sum().to_be_bytes());
}
