//! Bars, one below the other, each with its name before it and what it means behind it.

use super::drawing::{Anchor, Drawing, HEAD, Ink, RIGHT};
use crate::words::grouped;

/// The height of a bar with the gap below it, in pixels, and of the title of a group.
const ROW: u64 = 20;
const TITLE: u64 = 34;
const FOOT: u64 = 20;
/// Where bars begin, and how long the longest is.
const LEFT: u64 = 200;
const LONGEST: u64 = 400;

/// Groups of bars. Each group has a scale of its own.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// What is seen, in one line.
    pub title: String,
    /// What else is to be known, in one line.
    pub subtitle: String,
    /// The groups, one below the other.
    pub groups: Vec<Group>,
}

/// Bars that are compared with each other.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// What they are.
    pub title: String,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// Whose it is.
    pub name: String,
    /// How long it is.
    pub value: u64,
    /// What it means.
    pub note: String,
    /// Is it the one that counts?
    pub is_marked: bool,
}

impl Bars {
    pub(super) fn drawing(&self) -> Drawing {
        let rows: u64 = self.groups.iter().map(|group| group.bars.len() as u64).sum();
        let height = HEAD - ROW + rows * ROW + TITLE * self.groups.len() as u64 + FOOT;
        let mut drawing = Drawing::new(height, &self.title, &self.subtitle);
        let mut top = HEAD - ROW;
        for group in &self.groups {
            drawing.text(Ink::PanelTitle, Anchor::Start, 24, top + 22, &group.title);
            top += TITLE;
            let most = group.bars.iter().map(|bar| bar.value).max().unwrap_or(0).max(1);
            drawing.rect(Ink::Plate, 24, top - 2, RIGHT - 24, ROW * group.bars.len() as u64 + 2);
            for bar in &group.bars {
                draw(&mut drawing, bar, most, top);
                top += ROW;
            }
        }
        drawing
    }
}

fn draw(drawing: &mut Drawing, bar: &Bar, most: u64, top: u64) {
    let length = (u128::from(bar.value) * u128::from(LONGEST) / u128::from(most)) as u64;
    let length = length.max(u64::from(bar.value > 0));
    let ink = if bar.is_marked { Ink::Passed } else { Ink::Area };
    let (word, base) = (if bar.is_marked { Ink::Word } else { Ink::DimWord }, top + 14);
    drawing.text(word, Anchor::End, LEFT - 10, base, &bar.name);
    drawing.rect(ink, LEFT, top + 3, length, ROW - 6);
    drawing.text(word, Anchor::Start, LEFT + length + 8, base, &grouped(bar.value));
    drawing.text(Ink::DimWord, Anchor::End, RIGHT - 10, base, &bar.note);
}
