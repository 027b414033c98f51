//! A plot as a list of shapes: where everything stands is decided here, and how it is put down by `svg` and `png`.
//!
//! Areas and outlines are made of steps, one for each bin: nothing is smoothed, nothing is slanted, and so nothing is
//! shown that was not counted.

use super::scale::{Tick, ticks};
use super::{Panel, Plot};
use crate::words::grouped;

pub(super) const WIDTH: u64 = 960;
const LEFT: u64 = 64;
pub(super) const RIGHT: u64 = 936;
pub(super) const HEAD: u64 = 96;
/// The height of a panel with its title, and of the parts below that.
const PANEL: u64 = 168;
const TITLE: u64 = 30;
const AREA: u64 = 88;
const STRIP: u64 = 32;
const FOOT: u64 = 34;
/// The least height and width of a bar, in tenths of a pixel, so that it is seen.
const BAR_MIN: u64 = 20;
/// The width of a letter of the legend, more or less.
const LETTER: u64 = 7;

/// A picture: its size in pixels, and its shapes from the lowest to the topmost.
pub(super) struct Drawing {
    pub(super) width: u64,
    pub(super) height: u64,
    pub(super) title: String,
    pub(super) shapes: Vec<Shape>,
}

pub(super) enum Shape {
    Rect {
        ink: Ink,
        x: u64,
        y: u64,
        width: u64,
        height: u64,
    },
    /// A line across or down.
    Line {
        ink: Ink,
        from: (At, At),
        to: (At, At),
    },
    /// What is between a floor and steps; these begin where all do.
    Area {
        ink: Ink,
        floor: At,
        steps: Steps,
    },
    /// The line along steps, from a height on.
    Outline {
        ink: Ink,
        from: At,
        steps: Steps,
    },
    /// Bars, each with its left upper corner, its width and its height.
    Bars {
        ink: Ink,
        bars: Vec<[At; 4]>,
    },
    Text {
        ink: Ink,
        anchor: Anchor,
        x: u64,
        y: At,
        words: String,
    },
}

/// What a shape is, which says how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Paper,
    Plate,
    Area,
    Edge,
    Over,
    Limit,
    Tick,
    Level,
    Passed,
    Denied,
    Title,
    PanelTitle,
    Word,
    DimWord,
    BadWord,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A place or a length in tenths of a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At(pub(super) u64);

/// A height for each bin, side by side.
pub(super) struct Steps {
    heights: Vec<At>,
}

/// Bins alike, as one step.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) left: At,
    pub(super) right: At,
    pub(super) y: At,
}

impl Steps {
    pub(super) fn each(&self) -> impl Iterator<Item = Step> {
        let bins = self.heights.len();
        let mut begun = 0;
        self.heights.chunk_by(|one, next| one == next).map(move |alike| {
            let (left, right) = (x_of(begun, bins), x_of(begun + alike.len(), bins));
            begun += alike.len();
            Step { left, right, y: alike[0] }
        })
    }
}

impl At {
    /// Where steps begin.
    pub(super) const LEFT: Self = Self::pixels(LEFT);

    pub(super) const fn pixels(pixels: u64) -> Self {
        Self(pixels * 10)
    }
}

/// The left edge of bin `i` of so many.
fn x_of(i: usize, bins: usize) -> At {
    At(LEFT * 10 + (RIGHT - LEFT) * 10 * i as u64 / bins.max(1) as u64)
}

/// How high a value is where `most` is `height` pixels high, in tenths of a pixel.
fn tenths(value: u64, most: u64, height: u64) -> u64 {
    (u128::from(value) * u128::from(height * 10) / u128::from(most.max(1))) as u64
}

impl Plot {
    pub(super) fn drawing(&self) -> Drawing {
        let below = HEAD + PANEL * self.panels.len() as u64;
        let mut drawing = Drawing::new(below + FOOT, &self.title, &self.subtitle);
        self.legend(&mut drawing);
        for (panel, i) in self.panels.iter().zip(0..) {
            self.panel(&mut drawing, panel, HEAD + PANEL * i);
        }
        self.time_axis(&mut drawing, below);
        drawing
    }

    fn legend(&self, drawing: &mut Drawing) {
        let y = 80;
        let mut x = 24;
        let mut word = |drawing: &mut Drawing, ink: Ink, name: &str| {
            let sign = match ink {
                Ink::Limit | Ink::Level => {
                    drawing.line(ink, (x, y - 5), (x + 18, y - 5));
                    18
                }
                Ink::Passed | Ink::Denied => {
                    drawing.rect(ink, x, y - 10, 6, 10);
                    6
                }
                _ => {
                    drawing.rect(ink, x, y - 10, 16, 10);
                    16
                }
            };
            drawing.text(Ink::DimWord, Anchor::Start, x + sign + 8, y, name);
            x += sign + 8 + LETTER * name.chars().count() as u64 + 22;
        };
        word(drawing, Ink::Area, &self.area_name);
        if self.panels.iter().any(|panel| panel.limit.is_some()) {
            word(drawing, Ink::Over, "above the limit");
            word(drawing, Ink::Limit, "the limit");
        }
        if self.panels.iter().any(|panel| !panel.level.is_empty()) {
            word(drawing, Ink::Level, "left");
        }
        word(drawing, Ink::Passed, "passed");
        word(drawing, Ink::Denied, "denied");
    }

    fn panel(&self, drawing: &mut Drawing, panel: &Panel, top: u64) {
        drawing.text(Ink::PanelTitle, Anchor::Start, LEFT, top + 18, &panel.title);
        let note = if panel.is_broken { Ink::BadWord } else { Ink::DimWord };
        drawing.text(note, Anchor::End, RIGHT, top + 18, &panel.note);
        let (top, most) = (top + TITLE, self.most() + self.most() / 10);
        drawing.rect(Ink::Plate, LEFT, top, RIGHT - LEFT, AREA + 4 + STRIP);
        let base = top + AREA;
        let y_of = |value: u64| At(base * 10 - tenths(value, most, AREA));
        area(drawing, panel, At::pixels(base), &y_of);
        if let Some(limit) = panel.limit {
            let y = y_of(limit);
            drawing.shapes.push(Shape::Line {
                ink: Ink::Limit,
                from: (At::pixels(LEFT), y),
                to: (At::pixels(RIGHT), y),
            });
            let (anchor, y, words) = (Anchor::End, At(y.0 + 45), grouped(limit));
            drawing.shapes.push(Shape::Text { ink: Ink::Word, anchor, x: LEFT - 8, y, words });
        }
        drawing.line(Ink::Tick, (LEFT, base), (RIGHT, base));
        drawing.text(Ink::DimWord, Anchor::End, LEFT - 8, base + 4, "0");
        self.strip(drawing, panel, base + 4);
    }

    /// The requests of each bin, those that were denied upon those that passed.
    fn strip(&self, drawing: &mut Drawing, panel: &Panel, top: u64) {
        let (busiest, bottom) = (self.busiest(), (top + STRIP) * 10);
        let bins = panel.admitted.len();
        let mut bars = [Vec::new(), Vec::new()];
        for (i, (admitted, denied)) in panel.admitted.iter().zip(&panel.denied).enumerate() {
            let passed = tenths(*admitted, busiest, STRIP).max(if *admitted > 0 { BAR_MIN } else { 0 });
            let refused = tenths(*denied, busiest, STRIP).max(if *denied > 0 { BAR_MIN } else { 0 });
            let (x, width) = (x_of(i, bins), At(x_of(i + 1, bins).0.saturating_sub(x_of(i, bins).0).max(BAR_MIN)));
            for (kind, from, height) in [(0, 0, passed), (1, passed, refused)] {
                if height > 0 {
                    bars[kind].push([x, At(bottom - from - height), width, At(height)]);
                }
            }
        }
        for (bars, ink) in bars.into_iter().zip([Ink::Passed, Ink::Denied]) {
            if !bars.is_empty() {
                drawing.shapes.push(Shape::Bars { ink, bars });
            }
        }
    }

    fn time_axis(&self, drawing: &mut Drawing, top: u64) {
        let span = u128::from(self.length_ns.max(1));
        for Tick { at_ns, label } in ticks(self.begins, self.length_ns, 8) {
            let x = LEFT + (u128::from(at_ns) * u128::from(RIGHT - LEFT) / span) as u64;
            drawing.line(Ink::Tick, (x, top - 14), (x, top - 8));
            drawing.text(Ink::DimWord, Anchor::Middle, x, top + 8, &label);
        }
    }
}

/// The area under what a window held, what of it is above the limit, and the level of the bucket.
fn area(drawing: &mut Drawing, panel: &Panel, base: At, y_of: &dyn Fn(u64) -> At) {
    let steps = |values: &[u64]| Steps { heights: values.iter().map(|value| y_of(*value)).collect() };
    drawing.shapes.push(Shape::Area { ink: Ink::Area, floor: base, steps: steps(&panel.area) });
    if let Some(limit) = panel.limit.filter(|limit| panel.area.iter().any(|value| value > limit)) {
        let above: Vec<_> = panel.area.iter().map(|value| (*value).max(limit)).collect();
        drawing.shapes.push(Shape::Area { ink: Ink::Over, floor: y_of(limit), steps: steps(&above) });
    }
    drawing.shapes.push(Shape::Outline { ink: Ink::Edge, from: base, steps: steps(&panel.area) });
    if let Some(first) = panel.level.first() {
        let steps = steps(&panel.level);
        drawing.shapes.push(Shape::Outline { ink: Ink::Level, from: y_of(*first), steps });
    }
}

impl Drawing {
    /// A picture of this height, with what is seen and what else is to be known at its head.
    pub(super) fn new(height: u64, title: &str, subtitle: &str) -> Self {
        let mut drawing = Self { width: WIDTH, height, title: title.to_owned(), shapes: Vec::new() };
        drawing.rect(Ink::Paper, 0, 0, WIDTH, height);
        drawing.text(Ink::Title, Anchor::Start, 24, 34, title);
        drawing.text(Ink::DimWord, Anchor::Start, 24, 56, subtitle);
        drawing
    }

    pub(super) fn rect(&mut self, ink: Ink, x: u64, y: u64, width: u64, height: u64) {
        self.shapes.push(Shape::Rect { ink, x, y, width, height });
    }

    fn line(&mut self, ink: Ink, from: (u64, u64), to: (u64, u64)) {
        let at = |(x, y)| (At::pixels(x), At::pixels(y));
        self.shapes.push(Shape::Line { ink, from: at(from), to: at(to) });
    }

    pub(super) fn text(&mut self, ink: Ink, anchor: Anchor, x: u64, y: u64, words: &str) {
        self.shapes.push(Shape::Text { ink, anchor, x, y: At::pixels(y), words: words.to_owned() });
    }
}
