//! Where lines come from: files, compressed or not, and standard input.
//!
//! How a file is compressed is told from its first bytes, since rotated logs are renamed at will.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

/// The most logs that are read at once.
pub const FILES_MAX: usize = 1024;
/// Bytes that tell how a file is compressed.
const MAGIC_BYTES: usize = 4;
/// Bytes of a compressed file that are read at once.
const COMPRESSED_BYTES: usize = 64 << 10;

/// A log that is open.
pub struct Source {
    name: String,
    reader: Box<dyn Read>,
}

impl Source {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// It cannot be read, or is a directory.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        if path.as_os_str() == "-" {
            return Self::from_bytes("standard input", io::stdin().lock());
        }
        let error = |why: &dyn fmt::Display| SourceError { path: path.to_owned(), why: why.to_string() };
        let file = File::open(path).map_err(|why| error(&why))?;
        if file.metadata().map_err(|why| error(&why))?.is_dir() {
            return Err(error(&"it is a directory; name the files in it"));
        }
        Self::from_bytes(&path.display().to_string(), file)
    }

    /// Reads what is compressed or plain, told by its first bytes.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn from_bytes(name: &str, mut bytes: impl Read + 'static) -> Result<Self, SourceError> {
        let mut magic = Vec::with_capacity(MAGIC_BYTES);
        let read = bytes.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut magic);
        read.map_err(|why| SourceError { path: name.into(), why: why.to_string() })?;
        let kind = magic.clone();
        let all = Cursor::new(magic).chain(bytes);
        let buffered = |all| BufReader::with_capacity(COMPRESSED_BYTES, all);
        let reader: Box<dyn Read> = match kind.as_slice() {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(buffered(all))),
            [b'B', b'Z', b'h', b'1'..=b'9'] => Box::new(MultiBzDecoder::new(buffered(all))),
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
                Box::new(Frames { source: Some(Box::new(buffered(all))), frame: None })
            }
            _ => Box::new(all),
        };
        Ok(Self { name: name.to_owned(), reader })
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The frames of zstd, one after the other: the decoder ends behind each.
struct Frames {
    /// Between two frames.
    source: Option<Box<dyn Read>>,
    frame: Option<StreamingDecoder<Box<dyn Read>, ruzstd::decoding::FrameDecoder>>,
}

impl Frames {
    /// Begins the next frame; `false` if there is none.
    fn begin(&mut self) -> io::Result<bool> {
        let Some(mut source) = self.source.take() else { return Ok(false) };
        let mut first = [0; 1];
        if source.read(&mut first)? == 0 {
            return Ok(false);
        }
        let source: Box<dyn Read> = Box::new(Cursor::new(first).chain(source));
        match StreamingDecoder::new(source) {
            Ok(frame) => self.frame = Some(frame),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { .. })) => {
                return Err(io::Error::new(io::ErrorKind::Unsupported, "a frame of zstd that is to be skipped"));
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(true)
    }
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(frame) = &mut self.frame else {
                if self.begin()? {
                    continue;
                }
                return Ok(0);
            };
            let count = frame.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.source = self.frame.take().map(StreamingDecoder::into_inner);
        }
    }
}

/// A log cannot be read.
#[derive(Debug)]
pub struct SourceError {
    path: PathBuf,
    why: String,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read {}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for SourceError {}
