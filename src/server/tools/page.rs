//! `POST /page`: opens or navigates a page and gives the verdict; `GET /pages` lists the open ones.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use super::eval::{hung, time};
use super::verdict::verdict;
use crate::browser::fold::short;
use crate::browser::navigate::{Navigation, Summary, WaitUntil};
use crate::browser::page::{PageError, Viewport};
use crate::policy::host::Host;
use crate::policy::limits::{PAGE_TIMEOUT, PICTURE_PIXELS, SCALE, VIEWPORT, VIEWPORT_SIDE};
use crate::proxy::uploads::store::{Change, Put, UploadPath};
use crate::proxy::uploads::{HOST, ORIGIN};
use crate::server::answer::{Answer, Code, Refused};
use crate::server::arguments::parse;
use crate::server::pages::{Opened, inline_path};
use crate::server::session::{Outcome, Session};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: Option<String>,
    url: Option<String>,
    html: Option<String>,
    page: Option<String>,
    width: Option<u32>,
    height: Option<u32>,
    scale: Option<f64>,
    wait_for: Option<String>,
    #[serde(default)]
    wait_until: WaitUntil,
    timeout_ms: Option<u64>,
}

/// What is to be shown.
enum Content {
    /// An address, checked.
    Url(String),
    /// A document, served as an upload of the page's own.
    Html(String),
}

/// Opens or navigates a page.
pub(super) async fn post(session: &Session, body: &str) -> Outcome {
    let arguments: Arguments = parse(body)?;
    let content = content(session, &arguments)?;
    let within = time("timeout_ms", arguments.timeout_ms, PAGE_TIMEOUT)?;
    let began = Instant::now();
    let deadline = tokio::time::Instant::now() + within;
    let opened = match &arguments.page {
        Some(id) => {
            let opened = session.pages.get(id)?;
            let viewport = viewport(&arguments, opened.page.viewport())?;
            let set = opened.page.set_viewport(viewport).await;
            set.map_err(|error| session.pages.refused(id, error))?;
            opened
        }
        None => {
            let (width, height) = VIEWPORT;
            let viewport = viewport(
                &arguments,
                Viewport {
                    width,
                    height,
                    scale: 1.0,
                },
            )?;
            let place = session.pages.reserve()?;
            session.pages.open(place, viewport).await?
        }
    };
    let shown = show(session, &opened, content, &arguments, deadline).await;
    let (navigation, summary) = match shown {
        Ok(shown) => shown,
        Err(refused) => {
            // A page that never was what the agent asked for is not left behind.
            if arguments.page.is_none() && refused.code != "page_hung" {
                session.pages.close(&opened).await;
            }
            return Err(refused);
        }
    };
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Answer::Json(verdict(
        session,
        &opened,
        &navigation,
        &summary,
        ms,
    )))
}

/// The open pages.
pub(super) fn list(session: &Session) -> Answer {
    let line = |opened: &Arc<Opened>| {
        let Viewport {
            width,
            height,
            scale,
        } = opened.page.viewport();
        let mut line = json!({ "page": opened.id, "url": short(&opened.url()), "width": width, "height": height, "scale": scale });
        if opened.watched.is_frozen() {
            line["frozen"] = true.into();
        }
        line
    };
    Answer::Json(json!({ "pages": session.pages.list().iter().map(line).collect::<Vec<_>>() }))
}

async fn show(
    session: &Session,
    opened: &Opened,
    content: Content,
    arguments: &Arguments,
    deadline: tokio::time::Instant,
) -> Result<(Navigation, Summary), Refused> {
    let url = match content {
        Content::Url(url) => url,
        Content::Html(html) => serve(session, &opened.id, html)?,
    };
    session.pages.sent_to(opened, &url);
    let refuse = |error: PageError| session.pages.refused(&opened.id, error);
    let go = || opened.page.navigate(&url, arguments.wait_until, deadline);
    let known = session.kit.proxy.challenges();
    let mut navigation = go().await.map_err(refuse)?;
    // Chromium's network service was started anew, and has lost the proxy's password.
    if session.kit.proxy.challenges() > known && is_refused(opened, &navigation) {
        session
            .kit
            .prime_again(&opened.page)
            .await
            .map_err(refuse)?;
        navigation = go().await.map_err(refuse)?;
    }
    if let Some(selector) = arguments
        .wait_for
        .as_deref()
        .filter(|_| navigation.net_error.is_none())
    {
        navigation.timed_out |= !opened
            .page
            .wait_for(selector, deadline)
            .await
            .map_err(refuse)?;
    }
    match opened.page.summary().await {
        Ok(summary) => Ok((navigation, summary)),
        Err(PageError::Timeout) => Err(hung(session, opened).await),
        Err(error) => Err(refuse(error)),
    }
}

/// Whether the proxy may have refused a navigation: over TLS there is no document then, else it is a 403.
fn is_refused(opened: &Opened, navigation: &Navigation) -> bool {
    navigation.net_error.is_some() || opened.page.observed.document().status == Some(403)
}

fn serve(session: &Session, id: &str, html: String) -> Result<String, Refused> {
    let path = inline_path(id);
    let put = |path: &str| -> Result<_, crate::proxy::uploads::store::StoreRefusal> {
        let content_type = Some("text/html; charset=utf-8".to_owned());
        let put = Put {
            path: UploadPath::parse(path)?,
            bytes: Bytes::from(html),
            content_type,
            offset: None,
        };
        session.kit.uploads.apply(Change {
            put: vec![put],
            ..Change::default()
        })
    };
    put(&path).map_err(|refusal| {
        Refused::new(
            Code::UploadsFull,
            refusal.to_string(),
            "make room with `POST /files` and `delete` or `clear`",
        )
    })?;
    Ok(format!("{ORIGIN}/{path}"))
}

fn content(session: &Session, arguments: &Arguments) -> Result<Content, Refused> {
    match (&arguments.path, &arguments.url, &arguments.html) {
        (Some(path), None, None) => upload(session, path).map(Content::Url),
        (None, Some(url), None) => address(url).map(Content::Url),
        (None, None, Some(html)) => Ok(Content::Html(html.clone())),
        _ => Err(Refused::new(
            Code::BadArguments,
            "a page is one of `path`, `url` and `html`",
            "name exactly one of them",
        )),
    }
}

/// The address of an upload; a query or fragment may follow its path.
fn upload(session: &Session, text: &str) -> Result<String, Refused> {
    let end = text.find(['?', '#']).unwrap_or(text.len());
    let (path, rest) = text.split_at(end);
    let path = UploadPath::parse(path.strip_prefix('/').unwrap_or(path)).map_err(|refusal| {
        Refused::new(
            Code::BadPath,
            refusal.to_string(),
            "use the path that the file was uploaded under",
        )
    })?;
    if session.kit.uploads.get(&path).is_none() {
        let message = format!("there is no upload {:?}", short(path.as_str()));
        return Err(Refused::new(
            Code::NotFound,
            message,
            "`GET /files` lists them; `POST /files` makes one",
        ));
    }
    let mut url = url::Url::parse(ORIGIN).map_err(|_| {
        Refused::new(
            Code::Internal,
            "the origin is malformed",
            "tell the person whose machine it is",
        )
    })?;
    url.set_path(&path.as_str().replace('%', "%25"));
    Ok(format!("{url}{rest}"))
}

/// An address that a page may open: http or https, a name, never an address. Whether the host is allowed, the proxy
/// decides, and the verdict says.
fn address(text: &str) -> Result<String, Refused> {
    let bad = |message: String, fix: &str| Err(Refused::new(Code::BadUrl, message, fix));
    let Ok(url) = url::Url::parse(text.trim()) else {
        return bad(
            format!("{:?} is no address", short(text)),
            "write it whole, like https://example.com/",
        );
    };
    if !matches!(url.scheme(), "http" | "https") {
        return bad(
            format!("a page cannot open `{}:`", short(url.scheme())),
            "use http or https, `path` for an upload, or `html`",
        );
    }
    match url.host_str().map(|host| (host, Host::parse(host))) {
        Some((HOST, _)) | Some((_, Ok(_))) => Ok(url.into()),
        Some((host, Err(refusal))) => bad(
            format!("{:?} cannot be opened: {refusal}", short(host)),
            refusal.fix(),
        ),
        None => bad(
            "the address has no host".to_owned(),
            "write it whole, like https://example.com/",
        ),
    }
}

fn viewport(arguments: &Arguments, now: Viewport) -> Result<Viewport, Refused> {
    let viewport = Viewport {
        width: arguments.width.unwrap_or(now.width),
        height: arguments.height.unwrap_or(now.height),
        scale: arguments.scale.unwrap_or(now.scale),
    };
    let out = |field: &str, bounds: String| {
        Err(Refused::new(
            Code::BadArguments,
            format!("`{field}` is out of bounds"),
            bounds,
        ))
    };
    for (field, side) in [("width", viewport.width), ("height", viewport.height)] {
        if !VIEWPORT_SIDE.contains(&side) {
            return out(
                field,
                format!(
                    "use {} to {} CSS pixels",
                    VIEWPORT_SIDE.start(),
                    VIEWPORT_SIDE.end()
                ),
            );
        }
    }
    if !SCALE.contains(&viewport.scale) {
        return out("scale", format!("use {} to {}", SCALE.start(), SCALE.end()));
    }
    let (width, height) = viewport.pixels();
    if u64::from(width) * u64::from(height) > PICTURE_PIXELS {
        return out(
            "width, height and scale together",
            format!("use at most {PICTURE_PIXELS} pixels"),
        );
    }
    Ok(viewport)
}

impl Opened {
    /// The address that the page was last sent to.
    pub(in crate::server) fn url(&self) -> String {
        self.url
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_http_with_a_name() {
        for good in [
            "https://example.com/a?b#c",
            "http://example.com",
            "https://uploads.gpu-browser.internal/x",
        ] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in [
            "file:///etc/passwd",
            "chrome://gpu",
            "view-source:https://a.com",
            "javascript:alert(1)",
            "about:blank",
            "data:text/html,x",
            "blob:https://a.com/x",
            "https://127.0.0.1/",
            "http://[::1]/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://localhost/",
            "http://printer.local/",
            "https://",
            "example.com",
            "",
        ] {
            let refused = address(bad).unwrap_err();
            assert_eq!(refused.code, "bad_url", "{bad}");
            assert!(!refused.fix.is_empty());
        }
    }
}
