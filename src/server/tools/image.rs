//! `POST /image`: a part of a picture as plain base64, so that `| base64 -d >> shot.png` joins the parts to the file.

use serde::Deserialize;

use crate::server::answer::{Answer, Code, Refused};
use crate::server::arguments::parse;
use crate::server::artifacts::{ArtifactError, Artifacts, PartRefusal};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    image: String,
    /// Numbered from 1; the first where the agent does not say.
    part: Option<usize>,
}

/// Gives a part of a picture.
pub async fn post(artifacts: &Artifacts, body: &str) -> Result<Answer, Refused> {
    let Arguments { image, part } = parse(body)?;
    let part = artifacts.part(&image, part.unwrap_or(1)).await;
    part.map(Answer::Text).map_err(refuse)
}

/// The one place where refusals of artifacts get their codes.
fn refuse(error: ArtifactError) -> Refused {
    let refusal = match error {
        ArtifactError::Part(refusal) => refusal,
        broken => {
            tracing::error!(error = %broken, "a picture cannot be read");
            return Refused::new(
                Code::Internal,
                "the picture cannot be read",
                "take it again with `POST /screenshot`",
            );
        }
    };
    let message = refusal.to_string();
    match refusal {
        PartRefusal::NotFound(_) => Refused::new(
            Code::NotFound,
            message,
            "use the `image` of a reply of `POST /screenshot`",
        ),
        PartRefusal::Gone(_) => Refused::new(
            Code::Gone,
            message,
            "take it again with `POST /screenshot`, and fetch its parts at once",
        ),
        PartRefusal::OutOfRange { parts, .. } => Refused::new(
            Code::BadArguments,
            message,
            format!("ask for parts 1 to {parts}"),
        )
        .with("parts", parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::artifacts::Kind;

    #[tokio::test]
    async fn a_part_is_plain_base64_and_a_wrong_one_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::new(folder.path());
        artifacts
            .keep(Kind::Picture, "picture".into())
            .await
            .unwrap();
        for body in [r#"{"image":"i1"}"#, r#"{"image":"i1","part":1}"#] {
            let answer = post(&artifacts, body).await.unwrap();
            assert_eq!(answer, Answer::Text("cGljdHVyZQ==".into()));
        }
        for (body, status, code) in [
            (r#"{"image":"i2"}"#, 404, "not_found"),
            (r#"{"image":"i1","part":2}"#, 400, "bad_arguments"),
            (r#"{"image":"i1","part":0}"#, 400, "bad_arguments"),
            (r#"{"image":"i1","part":-1}"#, 400, "bad_arguments"),
            (r#"{"image":1}"#, 400, "bad_arguments"),
            ("", 400, "bad_arguments"),
        ] {
            let refused = post(&artifacts, body).await.unwrap_err();
            assert_eq!((refused.status, refused.code), (status, code), "{body}");
        }
        for _ in 0..crate::policy::limits::ARTIFACTS {
            artifacts.keep(Kind::Picture, "x".into()).await.unwrap();
        }
        let refused = post(&artifacts, r#"{"image":"i1"}"#).await.unwrap_err();
        assert_eq!((refused.status, refused.code), (404, "gone"));
    }
}
