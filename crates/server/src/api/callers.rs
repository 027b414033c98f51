//! Who may call.
//!
//! With a token, whoever sends it: `Authorization: Bearer TOKEN`. Without one whoever reaches the port may ask, since a
//! decision is what it is there for. To make a bucket full again is more than that: without a token it takes a call from
//! this machine, by a name of this machine, which no web page that somebody looks at can send.

use http::StatusCode;
use http::request::Parts;

use super::refusal::Refusal;
use crate::AdminToken;
use crate::operating::admin::is_of_this_machine;

/// Who may call.
#[derive(Clone, Debug, Default)]
pub enum Callers {
    /// Who shows this token.
    WithToken(AdminToken),
    /// Everybody on this machine, since nobody else reaches the port.
    Local,
    /// Everybody who reaches the port; but nobody makes a bucket full again.
    #[default]
    Anybody,
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// It is answered to everybody: it tells nothing and charges nothing.
    Greet,
    /// It asks.
    Ask,
    /// It makes a bucket full again.
    Reset,
}

impl Callers {
    pub(super) fn check(&self, deed: Deed, parts: &Parts) -> Result<(), Refusal> {
        match (self, deed) {
            (_, Deed::Greet) | (Self::Local | Self::Anybody, Deed::Ask) => Ok(()),
            (Self::WithToken(token), _) if token.is_shown_by(parts) => Ok(()),
            (Self::WithToken(_), _) => {
                let detail = "this needs the token of TIDEGATE_HTTP_TOKEN: `Authorization: Bearer TOKEN`";
                Err(Refusal::new(StatusCode::UNAUTHORIZED, detail))
            }
            (Self::Local, Deed::Reset) if is_of_this_machine(parts) => Ok(()),
            (Self::Local, Deed::Reset) => {
                let detail = "without a token this is done by the name `localhost` or an address of the loopback only";
                Err(Refusal::new(StatusCode::FORBIDDEN, detail))
            }
            (Self::Anybody, Deed::Reset) => {
                let detail = "anybody who reaches this server could do this, so it is not done; TIDEGATE_HTTP_TOKEN sets a token";
                Err(Refusal::new(StatusCode::FORBIDDEN, detail))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn check(callers: &Callers, deed: Deed, fields: &[(&str, &str)]) -> u16 {
        let request = fields.iter().fold(Request::get("/"), |request, (name, value)| request.header(*name, *value));
        let checked = callers.check(deed, &request.body(()).unwrap().into_parts().0);
        checked.map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn a_token_is_asked_for_where_there_is_one() {
        let callers = Callers::WithToken(AdminToken::new("0123456789abcdef").unwrap());
        let (right, wrong) =
            ([("authorization", "Bearer 0123456789abcdef")], [("authorization", "Bearer 0123456789abcdee")]);
        for deed in [Deed::Ask, Deed::Reset] {
            assert_eq!([&right[..], &wrong, &[]].map(|fields| check(&callers, deed, fields)), [200, 401, 401]);
        }
        assert_eq!(check(&callers, Deed::Greet, &[]), 200);
    }

    #[test]
    fn without_one_nobody_from_elsewhere_makes_a_bucket_full() {
        let (here, there) = ([("host", "localhost:8080")], [("host", "evil.example")]);
        assert_eq!(check(&Callers::Local, Deed::Reset, &here), 200);
        assert_eq!(check(&Callers::Local, Deed::Reset, &there), 403);
        assert_eq!(check(&Callers::Anybody, Deed::Reset, &here), 403);
        for callers in [Callers::Local, Callers::Anybody] {
            assert_eq!([check(&callers, Deed::Ask, &there), check(&callers, Deed::Greet, &there)], [200, 200]);
        }
    }
}
