//! Pictures: in a terminal, or in a file whose name says of which kind it is.

use std::fs;
use std::path::Path;

use tidegate_lab::plot::{Bars, Plot};

use crate::flags::Wrong;

/// The plot that is drawn in the terminal.
pub(crate) const IN_TERMINAL: &str = "-";
/// The width of a terminal that does not say it.
const COLUMNS: usize = 80;

/// The width of the terminal: what COLUMNS says, or else what it says itself.
pub(crate) fn columns() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let measured = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    said.or_else(measured).unwrap_or(COLUMNS)
}

/// Writes a file that somebody asked for.
pub(crate) fn write(path: &Path, contents: &[u8]) -> anyhow::Result<()> {
    fs::write(path, contents).map_err(|error| anyhow::anyhow!("cannot write {}: {error}", path.display()))
}

/// What can be drawn as either kind.
pub(crate) trait Drawn {
    fn svg(&self) -> String;
    fn png(&self) -> Vec<u8>;
}

impl Drawn for Plot {
    fn svg(&self) -> String {
        self.to_svg()
    }

    fn png(&self) -> Vec<u8> {
        self.to_png()
    }
}

impl Drawn for Bars {
    fn svg(&self) -> String {
        self.to_svg()
    }

    fn png(&self) -> Vec<u8> {
        self.to_png()
    }
}

/// The two kinds of picture.
#[derive(Clone, Copy)]
pub(crate) enum Picture {
    Svg,
    Png,
}

impl Picture {
    /// As the name of the file says.
    pub(crate) fn named(path: &Path) -> Result<Self, Wrong> {
        let is = |extension: &str| path.extension().is_some_and(|its| its.eq_ignore_ascii_case(extension));
        match (is("svg"), is("png")) {
            (true, _) => Ok(Self::Svg),
            (_, true) => Ok(Self::Png),
            _ => Err(Wrong::new(format_args!("--plot {}: name it FILE.svg or FILE.png", path.display()))),
        }
    }

    pub(crate) fn draw(self, drawn: &impl Drawn, path: &Path) -> anyhow::Result<()> {
        match self {
            Self::Svg => write(path, drawn.svg().as_bytes()),
            Self::Png => write(path, &drawn.png()),
        }
    }
}
