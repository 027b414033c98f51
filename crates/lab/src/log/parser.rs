//! From the bytes of a line to a request, in one format.

use crate::log::field::Field;
use crate::log::json_names::{CADDY, Name, TRAEFIK, USUAL};
use crate::log::program::Program;
use crate::log::stamp::Clock;
use crate::log::w3c::Fields;
use crate::log::{Escapes, Fault, Format, Known, Line, Place, json};

/// Reads the lines of one file, in order: a line can say how those behind it are to be read.
#[derive(Clone, Debug)]
pub struct Parser {
    shape: Shape,
    clock: Clock,
    /// Is a line's time that of the response's end? Then how long it took is taken off.
    is_stamped_at_end: bool,
}

#[derive(Clone, Debug)]
enum Shape {
    Text(Box<Program>),
    Json(&'static [Name]),
    /// As a line that begins with `#Fields:` says, once there was one.
    Fields(Option<Box<Fields>>),
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A request, which was written where the caller wanted it.
    Request,
    /// Nothing: it is empty, or a comment.
    Nothing,
    /// It cannot be read.
    Fault(Fault<'a>),
}

impl Parser {
    /// A parser of lines in this format. `place` is where stamps are from that name no zone.
    #[must_use]
    pub fn new(format: &Format, place: impl Into<Place>) -> Self {
        let (shape, is_stamped_at_end) = match format {
            Format::Custom { program, is_stamped_at_end, .. } => {
                (Shape::Text(Box::new(program.clone())), *is_stamped_at_end)
            }
            Format::Known(Known::Caddy) => (Shape::Json(CADDY), true),
            Format::Known(Known::TraefikJson) => (Shape::Json(TRAEFIK), false),
            Format::Known(Known::Json) => (Shape::Json(USUAL), true),
            Format::Known(known) => match known.program() {
                Some(program) => (Shape::Text(Box::new(program)), false),
                None => (Shape::Fields(None), true),
            },
        };
        Self { shape, clock: Clock::new(place.into()), is_stamped_at_end }
    }

    /// The place that stamps were taken to be from, if any named no zone.
    #[must_use]
    pub fn assumed_place(&self) -> Option<&Place> {
        self.clock.assumed()
    }

    /// Reads a line, without the end of the line. A request is written into `out`, which is large, and so is not handed
    /// from one to the next.
    #[inline]
    pub fn read<'a>(&'a mut self, line: &'a [u8], out: &mut Line<'a>) -> Parsed<'a> {
        match line.first() {
            None => return Parsed::Nothing,
            Some(b'#') => return self.comment(line),
            Some(_) => {}
        }
        *out = Line::default();
        let read = match &self.shape {
            Shape::Text(program) => {
                out.escapes = program.escapes();
                program.run(line, &mut self.clock, out)
            }
            Shape::Json(names) => {
                out.escapes = Escapes::Json;
                json::read(line, names, &mut self.clock, out)
            }
            Shape::Fields(Some(fields)) => {
                out.escapes = fields.escapes;
                fields.program.run(line, &mut self.clock, out)
            }
            Shape::Fields(None) => Err(Fault::new("#Fields:", line)),
        };
        match read {
            Ok(()) => {
                if self.is_stamped_at_end {
                    out.time = out.time.earlier_by(out.duration_ns.unwrap_or(0));
                }
                Parsed::Request
            }
            Err(fault) => Parsed::Fault(fault),
        }
    }

    fn comment<'a>(&mut self, line: &'a [u8]) -> Parsed<'a> {
        if let (Shape::Fields(fields), Some(names)) = (&mut self.shape, line.strip_prefix(b"#Fields:")) {
            let said = Fields::new(&String::from_utf8_lossy(names));
            let is_client = |field| field == Field::Client;
            if !said.program.has(is_client) {
                return Parsed::Fault(Fault::new("c-ip among the fields", line));
            }
            *fields = Some(Box::new(said));
        }
        Parsed::Nothing
    }
}
