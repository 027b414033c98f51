//! A door for whoever throws bytes at the commands.

use super::command::{BYTES_MAX, Reader, Unreadable, WORDS_MAX};
use super::throttle::{Dialect, Throttle};

/// Reads commands from bytes that come in pieces of `length`, and from all of them at once.
///
/// # Panics
/// Both do not read as the same, or a command is beyond its bounds.
pub fn commands(input: &[u8], length: usize) {
    let at_once = read([input].into_iter());
    let in_pieces = read(input.chunks(length.max(1)));
    // A line that is too long is refused as soon as that is seen; everything else is the same.
    if at_once.1 != Some(Unreadable::Line) && in_pieces.1 != Some(Unreadable::Line) {
        assert_eq!(at_once, in_pieces);
    }
    let mut last = None;
    for words in at_once.0 {
        assert!(words.len() <= WORDS_MAX, "a command has a number of words");
        assert!(words.iter().map(Vec::len).sum::<usize>() <= BYTES_MAX, "and a length");
        let rest = || words.iter().skip(1).map(Vec::as_slice);
        for dialect in [Dialect::Cell, Dialect::Crab] {
            let read = Throttle::read(dialect, rest(), &mut last);
            assert_eq!(read, Throttle::read(dialect, rest(), &mut None), "what came before changes nothing");
            drop(read.map_err(|refused| refused.to_string()));
        }
    }
}

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<Vec<u8>>>, Option<Unreadable>) {
    let (mut reader, mut bytes, mut all) = (Reader::default(), Vec::new(), Vec::new());
    for piece in pieces {
        bytes.extend_from_slice(piece);
        let mut taken = 0;
        loop {
            match reader.next(&bytes[taken..], BYTES_MAX) {
                Ok(Some((words, used))) => {
                    all.push(words.iter().map(<[u8]>::to_vec).collect());
                    taken += used;
                }
                Ok(None) => break,
                Err(error) => return (all, Some(error)),
            }
        }
        bytes.drain(..taken);
    }
    (all, None)
}
