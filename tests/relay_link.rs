//! The app's end against the embedded relay: what it asks for, what it is asked, how it ends.

mod relay_stage;

use gpu_browser::relay::frames::{Body, TaskAnswer};
use gpu_browser::relay::link::{Ending, LinkError, LinkEvent, LinkState, Reply};
use gpu_browser::relay::registration::ToolSpec;
use relay_stage::*;
use serde_json::json;

#[tokio::test]
async fn a_call_reaches_the_app_and_its_reply_the_agent() {
    let relay = relay().await;
    let (link, mut events, minted) = linked(relay.address()).await;
    assert_eq!(
        minted.link,
        format!("http://{}/v1/t/{}/agents.md", relay.address(), minted.token)
    );

    let path = tool(&minted, "/echo?dropped=1");
    let body = "{\"a\":1}";
    let (answer, ()) = tokio::join!(post(relay.address(), &path, body), async {
        let call = called(&mut events).await;
        assert_eq!(
            (call.method.as_str(), call.path.as_str(), call.body.as_str()),
            ("POST", "/echo", body)
        );
        link.reply(&plain(&call, "pong")).unwrap();
    });
    assert_eq!((answer.status, answer.text()), (200, "pong"));
    link.close().await;
    relay.close().await;
}

#[tokio::test]
async fn a_json_reply_and_a_task_reach_the_agent() {
    let relay = relay().await;
    let (link, mut events, minted) = linked(relay.address()).await;
    let path = tool(&minted, "/slow");
    let (answer, ()) = tokio::join!(post(relay.address(), &path, ""), async {
        let id = called(&mut events).await.id;
        let reply = Reply {
            id,
            status: 202,
            body: Body::None,
            task_id: Some("t1".into()),
        };
        link.reply(&reply).unwrap();
    });
    assert_eq!(
        (answer.status, answer.json()),
        (202, json!({ "taskId": "t1" }))
    );
    let poll = tool(&minted, "/_as_tasks/t1");
    assert_eq!(
        get(relay.address(), &poll).await.json(),
        json!({ "taskId": "t1", "completed": false })
    );
    let answer = TaskAnswer {
        task_id: "t1".into(),
        status: 201,
        body: Body::Json(json!({ "done": [1] })),
    };
    link.complete_task(&answer).unwrap();
    let done = loop {
        let polled = get(relay.address(), &poll).await;
        if polled.status != 202 {
            break polled;
        }
    };
    assert_eq!((done.status, done.json()), (201, json!({ "done": [1] })));
    assert_eq!(get(relay.address(), &poll).await.status, 404);
}

#[tokio::test]
async fn links_are_minted_listed_and_revoked() {
    let relay = relay().await;
    let (link, _events, first) = linked(relay.address()).await;
    let second = link.mint("second").await.unwrap();
    let listed = link.list().await.unwrap();
    let listed: Vec<_> = listed.into_iter().map(|listed| listed.minted).collect();
    assert_eq!(listed, [first.clone(), second.clone()]);
    assert!(link.revoke(&second.token).await.unwrap());
    assert!(!link.revoke(&second.token).await.unwrap());
    assert_eq!(
        get(relay.address(), &tool(&second, "/agents.md"))
            .await
            .status,
        401
    );
    assert_eq!(
        get(relay.address(), &tool(&first, "/agents.md"))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn the_fifty_first_link_is_refused_with_the_relays_own_code() {
    let relay = relay().await;
    let (link, _events, _) = linked(relay.address()).await;
    for _ in 1..50 {
        link.mint("").await.unwrap();
    }
    match link.mint("").await {
        Err(LinkError::Refused { code, .. }) => assert_eq!(code, "too_many_tokens"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn tools_are_updated_and_bad_ones_are_never_sent() {
    let relay = relay().await;
    let (link, _events, minted) = linked(relay.address()).await;
    let spec = |path: &str| ToolSpec {
        method: "get".into(),
        path: path.into(),
        description: String::new(),
        input_schema: Some(json!({ "type": "object" })),
    };
    link.update_tools(vec![spec("/new")], Some("tools.json two".into()))
        .await
        .unwrap();
    let tools = get(relay.address(), &tool(&minted, "/tools.json"))
        .await
        .json();
    assert_eq!(
        tools["tools"],
        json!([{ "method": "GET", "path": "/new", "description": "", "input_schema": { "type": "object" } }])
    );
    assert_eq!(
        get(relay.address(), &tool(&minted, "/agents.md"))
            .await
            .text(),
        "tools.json two"
    );
    let refused = link.update_tools(vec![spec("/_as_x")], None).await;
    assert!(matches!(refused, Err(LinkError::Registration(_))));
}

#[tokio::test]
async fn closing_ends_the_session_and_tells_so() {
    let relay = relay().await;
    let (link, mut events, minted) = linked(relay.address()).await;
    link.close().await;
    assert!(matches!(
        events.recv().await,
        Some(LinkEvent::Ended(Ending::Closed))
    ));
    assert!(events.recv().await.is_none());
    assert!(matches!(
        link.status().state,
        LinkState::Ended(Ending::Closed)
    ));
    let answer = get(relay.address(), &tool(&minted, "/agents.md")).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (503, "app_offline")
    );
    assert!(
        !answer.headers.contains_key("retry-after"),
        "ended, not held"
    );
    assert_eq!(link.mint("x").await, Err(LinkError::Ended));
}
