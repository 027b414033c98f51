//! From a request to the keys it is charged to.

use std::borrow::Cow;

use crate::path::{normal_path, segment};
use crate::{Attributes, Client, ClientAddress, FieldName, KeyPart, KeyParts, Keys, OnMissing, cookie, key::Tag};

/// The request at hand. Its client is looked for at most once, its path is normalised at most once, and each only if
/// somebody asks.
pub(crate) struct Caller<'a, A: ?Sized> {
    attributes: &'a A,
    address: &'a ClientAddress,
    client: Option<Client>,
    path: Option<Cow<'a, str>>,
}

impl<'a, A: Attributes + ?Sized> Caller<'a, A> {
    pub(crate) fn new(attributes: &'a A, address: &'a ClientAddress) -> Self {
        Self { attributes, address, client: None, path: None }
    }

    pub(crate) fn attributes(&self) -> &'a A {
        self.attributes
    }

    /// The path in its normal form.
    pub(crate) fn path(&mut self) -> &str {
        self.path.get_or_insert_with(|| normal_path(self.attributes.path()))
    }

    /// Builds a key. If a part is missing and nothing may stand in, nothing is built, and that part is the error.
    pub(crate) fn push_key<'p>(
        &mut self,
        parts: &'p KeyParts,
        on_missing: OnMissing,
        keys: &mut Keys,
    ) -> Result<(), &'p KeyPart> {
        for part in parts.as_slice() {
            if self.push(part, keys) {
                continue;
            }
            if on_missing != OnMissing::Client {
                keys.abandon();
                return Err(part);
            }
            keys.push_client(Tag::Missing, self.client(), &self.address.grouping);
        }
        Ok(())
    }

    /// Adds one part; `false` if the request does not have it.
    fn push(&mut self, part: &KeyPart, keys: &mut Keys) -> bool {
        match part {
            KeyPart::Client => keys.push_client(Tag::Client, self.client(), &self.address.grouping),
            KeyPart::Header(name) => return self.push_header(name, part.is_secret(), keys),
            KeyPart::Cookie(name) => match cookie::value(self.attributes, name.as_str()) {
                Some(value) => keys.push_value(value, part.is_secret()),
                None => return false,
            },
            KeyPart::Segment(number) => match segment(self.path(), usize::from(number.get())) {
                Some(value) => keys.push_value(value.as_bytes(), false),
                None => return false,
            },
            KeyPart::Claim(name) => match self.attributes.claim(name.as_str()) {
                Some(value) => keys.push_value(value, part.is_secret()),
                None => return false,
            },
            KeyPart::Global => keys.push(Tag::Global, &[]),
        }
        true
    }

    fn push_header(&self, name: &FieldName, secret: bool, keys: &mut Keys) -> bool {
        // HTTP/2 has no Host field; a face knows where else the host stands.
        if name.as_str() == "host" {
            return self.attributes.host().map(|host| keys.push_value(host.as_bytes(), secret)).is_some();
        }
        let (mut count, mut last, mut framed_bytes) = (0_usize, &[][..], 0_usize);
        self.attributes.header_lines(name.as_str(), &mut |line| {
            last = line;
            count += 1;
            framed_bytes += 1 + line.len();
        });
        match count {
            0 => return false,
            1 => keys.push_value(last, secret),
            _ => keys.push_lines(framed_bytes, secret, |each| {
                self.attributes.header_lines(name.as_str(), &mut |line| each(line));
            }),
        }
        true
    }

    pub(crate) fn client(&mut self) -> Client {
        *self.client.get_or_insert_with(|| self.address.of(self.attributes))
    }
}
