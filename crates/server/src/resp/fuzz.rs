//! A door for whoever throws bytes at the commands.

use bytes::BytesMut;

use super::command::{BYTES_MAX, Reader, Unreadable, WORDS_MAX, Words};
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
    for words in at_once.0 {
        assert!((1..=WORDS_MAX).contains(&words.len()), "a command has a number of words");
        assert!(words.iter().map(|word| word.len()).sum::<usize>() <= BYTES_MAX, "and a length");
        for dialect in [Dialect::Cell, Dialect::Crab] {
            drop(Throttle::read(dialect, &words[1..]).map_err(|refused| refused.to_string()));
        }
    }
}

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Words>, Option<Unreadable>) {
    let (mut reader, mut bytes, mut all) = (Reader::default(), BytesMut::new(), Vec::new());
    for piece in pieces {
        bytes.extend_from_slice(piece);
        loop {
            match reader.next(&mut bytes, BYTES_MAX) {
                Ok(Some(words)) => all.push(words),
                Ok(None) => break,
                Err(error) => return (all, Some(error)),
            }
        }
    }
    (all, None)
}
