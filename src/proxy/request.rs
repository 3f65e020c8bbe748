//! A request's head, parsed once into what it asks for.
//!
//! hyper takes more than a proxy may: `good@evil:443` has the host `evil`, `:+443` the port 443, and a CONNECT may carry a
//! body. So the raw text of the authority is judged, never what was made of it:
//!
//! | a head is taken when | or else |
//! |---|---|
//! | HTTP/1.1; CONNECT or a method of the list | `bad_request` |
//! | exactly one Host, the same as the target (RFC 9112, 3.2) | `bad_request` |
//! | no Transfer-Encoding: Chromium sends none to an HTTP/1.1 proxy, and hyper hides the Content-Length beside it | `bad_request` |
//! | CONNECT: authority-form alone, no body, `name:443` or `name:80` to the letter | `bad_request`, `port_not_allowed`, … |
//! | else: absolute-form, `http` alone, port 80 | `bad_request`, `port_not_allowed`, … |
//!
//! Two Content-Length that differ, folded or spaced header names, and bare CR never get here: hyper answers 400.

use hyper::header::{CONTENT_LENGTH, HOST, HeaderMap, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::{Method, Uri, Version};

use super::uploads;
use crate::policy::host::{self, Host, Port};
use crate::policy::refusal::Refusal;

/// The page that a new browser context is primed with: it is asked for the password there, once.
pub const PRIME_URL: &str = "http://prime.gpu-browser.internal/";
const PRIME_HOST: &str = "prime.gpu-browser.internal";

/// Methods of plain requests. CONNECT has its own way; TRACE would show a page the headers that we added.
const METHODS: &[Method] = &[
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

/// Where a request wants to go. Names of our own are told apart here, before any rule and any resolver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// The uploads host.
    Uploads,
    /// The priming page.
    Prime,
    /// A host of the network.
    Site(Host),
}

/// What a head asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// A tunnel.
    Connect(Destination, Port),
    /// One plain request, by its path.
    Plain(Destination, PathAndQuery),
}

/// The target of a head as it was written, for the log.
pub fn raw_target(uri: &Uri) -> &str {
    uri.authority().map_or("", |authority| authority.as_str())
}

/// Parses a head.
pub fn parse(head: &Parts) -> Result<Ask, Refusal> {
    if head.version != Version::HTTP_11 || head.headers.contains_key(TRANSFER_ENCODING) {
        return Err(Refusal::BadRequest);
    }
    let authority = head.uri.authority().ok_or(Refusal::BadRequest)?.as_str();
    if head.method == Method::CONNECT {
        connect(head, authority)
    } else {
        plain(head, authority)
    }
}

fn connect(head: &Parts, authority: &str) -> Result<Ask, Refusal> {
    let bare = head.uri.scheme().is_none() && head.uri.path_and_query().is_none();
    if !bare || head.headers.contains_key(CONTENT_LENGTH) {
        return Err(Refusal::BadRequest);
    }
    if !one_host(&head.headers)?.eq_ignore_ascii_case(authority) {
        return Err(Refusal::BadRequest);
    }
    let (name, port) = Port::split(authority)?;
    Ok(Ask::Connect(destination(name)?, port))
}

fn plain(head: &Parts, authority: &str) -> Result<Ask, Refusal> {
    if head.uri.scheme() != Some(&Scheme::HTTP) || !METHODS.contains(&head.method) {
        return Err(Refusal::BadRequest);
    }
    let target = with_port(authority);
    if !with_port(one_host(&head.headers)?).eq_ignore_ascii_case(&target) {
        return Err(Refusal::BadRequest);
    }
    let (name, port) = Port::split(&target)?;
    let destination = destination(name)?;
    if port != Port::Http {
        return Err(Refusal::Port);
    }
    let path = head.uri.path_and_query().cloned();
    Ok(Ask::Plain(
        destination,
        path.unwrap_or_else(|| PathAndQuery::from_static("/")),
    ))
}

/// Adds the port that `http` stands for where none is written; a colon without digits is left to be refused.
fn with_port(authority: &str) -> String {
    let after_brackets = authority.rsplit(']').next().unwrap_or(authority);
    if after_brackets.contains(':') {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    }
}

fn one_host(headers: &HeaderMap) -> Result<&str, Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().map_err(|_| Refusal::BadRequest),
        _ => Err(Refusal::BadRequest),
    }
}

fn destination(name: &str) -> Result<Destination, Refusal> {
    match host::spell(name) {
        Ok(name) if name == uploads::HOST => Ok(Destination::Uploads),
        Ok(name) if name == PRIME_HOST => Ok(Destination::Prime),
        _ => Host::parse(name).map(Destination::Site),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn head(method: &str, target: &str, hosts: &[&str], more: &[(&str, &str)]) -> Option<Parts> {
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .version(Version::HTTP_11);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        Some(request.body(()).ok()?.into_parts().0)
    }

    fn connect_to(target: &str) -> Result<Ask, Refusal> {
        head("CONNECT", target, &[target], &[])
            .map_or(Err(Refusal::BadAuthority), |head| parse(&head))
    }

    fn site(name: &str) -> Destination {
        Destination::Site(Host::parse(name).unwrap())
    }

    #[test]
    fn a_connect_names_one_host_and_one_of_two_ports() {
        assert_eq!(
            connect_to("a.example:443"),
            Ok(Ask::Connect(site("a.example"), Port::Https))
        );
        assert_eq!(
            connect_to("A.Example.:80"),
            Ok(Ask::Connect(site("a.example"), Port::Http))
        );
        for (target, refusal) in [
            ("good@evil.example:443", Refusal::BadAuthority),
            ("a.example:0443", Refusal::Port),
            ("a.example:+443", Refusal::Port),
            ("a.example:65979", Refusal::BadAuthority),
            ("a.example:", Refusal::BadAuthority),
            ("a.example", Refusal::BadAuthority),
            ("a.example:8443", Refusal::Port),
            ("http://a.example:443/", Refusal::BadRequest),
            ("[a.example]:443", Refusal::AddressLiteral),
            ("[::1]:443", Refusal::AddressLiteral),
            ("127.0.0.1:443", Refusal::AddressLiteral),
            ("a.example..:443", Refusal::BadAuthority),
            ("localhost:443", Refusal::LocalName),
        ] {
            assert_eq!(connect_to(target), Err(refusal), "{target}");
        }
    }

    #[test]
    fn our_own_names_are_told_apart_before_any_rule() {
        for target in [
            "uploads.gpu-browser.internal:443",
            "Uploads.GPU-Browser.Internal.:443",
        ] {
            assert_eq!(
                connect_to(target),
                Ok(Ask::Connect(Destination::Uploads, Port::Https))
            );
        }
        assert_eq!(
            connect_to("x.uploads.gpu-browser.internal:443"),
            Err(Refusal::LocalName)
        );
    }

    #[test]
    fn a_body_and_a_foreign_host_are_refused_with_connect() {
        let target = "a.example:443";
        for (hosts, more) in [
            (vec![target], vec![("content-length", "0")]),
            (vec![target], vec![("transfer-encoding", "chunked")]),
            (vec!["b.example:443"], vec![]),
            (vec!["a.example"], vec![]),
            (vec![target, target], vec![]),
            (vec![], vec![]),
        ] {
            assert_eq!(
                parse(&head("CONNECT", target, &hosts, &more).unwrap()),
                Err(Refusal::BadRequest),
                "{hosts:?} {more:?}"
            );
        }
        let mut old = head("CONNECT", target, &[target], &[]).unwrap();
        old.version = Version::HTTP_10;
        assert_eq!(parse(&old), Err(Refusal::BadRequest));
    }

    #[test]
    fn a_plain_request_is_absolute_and_http_alone() {
        let get =
            |target: &str, host: &str| head("GET", target, &[host], &[]).map(|head| parse(&head));
        let path = PathAndQuery::from_static("/x?y");
        let taken = Some(Ok(Ask::Plain(site("a.example"), path)));
        for (target, host) in [
            ("http://a.example/x?y", "a.example"),
            ("http://a.example:80/x?y", "a.example"),
            ("http://a.example/x?y", "A.example:80"),
        ] {
            assert_eq!(get(target, host), taken, "{target} {host}");
        }
        for (target, host, refusal) in [
            ("/x", "a.example", Refusal::BadRequest),
            ("//evil.example/x", "evil.example", Refusal::BadRequest),
            ("https://a.example/", "a.example", Refusal::BadRequest),
            ("ftp://a.example/", "a.example", Refusal::BadRequest),
            ("http://a.example/", "b.example", Refusal::BadRequest),
            ("http://a.example:8080/", "a.example:8080", Refusal::Port),
            ("http://a.example:443/", "a.example:443", Refusal::Port),
            (
                "http://u:p@a.example/",
                "u:p@a.example",
                Refusal::BadAuthority,
            ),
            (
                "http://127.0.0.1:9001/",
                "127.0.0.1:9001",
                Refusal::AddressLiteral,
            ),
            ("http://[::1]/", "[::1]", Refusal::AddressLiteral),
            (
                "http://169.254.169.254/latest",
                "169.254.169.254",
                Refusal::AddressLiteral,
            ),
        ] {
            let got = get(target, host).unwrap_or(Err(refusal));
            assert_eq!(got, Err(refusal), "{target}");
        }
    }

    #[test]
    fn methods_off_the_list_and_chunked_bodies_are_refused() {
        for method in ["TRACE", "connect", "PROPFIND", "GET2"] {
            let head = head(method, "http://a.example/", &["a.example"], &[]).unwrap();
            assert_eq!(parse(&head), Err(Refusal::BadRequest), "{method}");
        }
        let chunked = [("transfer-encoding", "chunked")];
        let head = head("POST", "http://a.example/", &["a.example"], &chunked).unwrap();
        assert_eq!(parse(&head), Err(Refusal::BadRequest));
    }
}
