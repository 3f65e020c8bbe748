use proptest::prelude::*;

use super::*;

fn rules(names: &[&str]) -> Vec<Rule> {
    names
        .iter()
        .map(|name| Rule::parse(name).unwrap())
        .collect()
}

fn plea(names: &[&str], task: &str) -> Plea {
    Plea {
        hosts: rules(names),
        reason: "the model is there".to_owned(),
        page: None,
        task: task.to_owned(),
    }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn an_answer_to_a_number_that_is_not_there_yet_is_refused() {
    let mut approvals = Approvals::default();
    for number in [0, 1, 7, u32::MAX] {
        let early = approvals.answer(number, Decision::Allowed, None);
        assert_eq!(early, Err(AnswerError::NotYet(number)));
    }
    let asked = approvals.ask(plea(&["a.example"], "t1"), &Allowlist::default(), at(0));
    assert_eq!(asked, Ok(Asked::New(1)));
    let settled = approvals.answer(1, Decision::Allowed, None).unwrap();
    assert_eq!(settled.tasks, ["t1"]);
    let again = approvals.answer(1, Decision::Denied, None).unwrap_err();
    assert_eq!(again.to_string(), "request 1 is allowed already");
}

#[test]
fn the_same_hosts_are_one_question_in_any_order_and_case() {
    let (mut approvals, none) = (Approvals::default(), Allowlist::default());
    let asked = |approvals: &mut Approvals, names: &[&str], task: &str| {
        approvals.ask(plea(names, task), &none, at(0))
    };
    assert_eq!(
        asked(&mut approvals, &["a.example", "b.example"], "t1"),
        Ok(Asked::New(1))
    );
    assert_eq!(
        asked(
            &mut approvals,
            &["B.example.", "a.example", "a.example"],
            "t2"
        ),
        Ok(Asked::Joined(1))
    );
    assert_eq!(
        asked(&mut approvals, &["a.example"], "t3"),
        Ok(Asked::New(2))
    );
    let settled = approvals
        .answer(1, Decision::Denied, Some("no".to_owned()))
        .unwrap();
    assert_eq!(settled.tasks, ["t1", "t2"]);
    for n in 0..REQUEST_JOINED - 1 {
        assert!(asked(&mut approvals, &["c.example"], &n.to_string()).is_ok());
    }
    asked(&mut approvals, &["c.example"], "last").unwrap();
    assert_eq!(
        asked(&mut approvals, &["c.example"], "over"),
        Err(AskRefusal::TooManyJoined)
    );
}

#[test]
fn a_denied_host_is_not_asked_again_under_any_spelling() {
    let (mut approvals, none) = (Approvals::default(), Allowlist::default());
    approvals
        .ask(plea(&["a.b.example"], "t"), &none, at(0))
        .unwrap();
    approvals.answer(1, Decision::Denied, None).unwrap();
    for (names, denied) in [
        (&["a.b.example"][..], true),
        (&["A.B.EXAMPLE."], true),
        (&["*.b.example"], true),
        (&["*.example.com", "a.b.example"], true),
        (&["b.example"], false),
        (&["x.b.example"], false),
    ] {
        let asked = approvals.ask(plea(names, "t"), &none, at(1));
        assert_eq!(
            matches!(asked, Err(AskRefusal::AlreadyDenied(_))),
            denied,
            "{names:?}: {asked:?}"
        );
    }
}

#[test]
fn what_is_allowed_already_is_not_asked() {
    let allow = Allowlist::new(rules(&["a.example", "*.b.example"]));
    let mut approvals = Approvals::default();
    let asked = approvals.ask(
        plea(&["a.example", "x.b.example", "*.y.b.example"], "t"),
        &allow,
        at(0),
    );
    assert_eq!(asked, Ok(Asked::Allowed));
    let asked = approvals.ask(plea(&["a.example", "b.example"], "t"), &allow, at(0));
    assert_eq!(asked, Ok(Asked::New(1)));
    assert_eq!(
        approvals.waiting().next().unwrap().hosts,
        rules(&["b.example"])
    );
}

#[test]
fn ten_wait_and_twenty_come_in_an_hour() {
    let (mut approvals, none) = (Approvals::default(), Allowlist::default());
    let ask = |approvals: &mut Approvals, n: usize, seconds| {
        approvals.ask(plea(&[&format!("h{n}.example")], "t"), &none, at(seconds))
    };
    for n in 0..REQUESTS_WAITING {
        ask(&mut approvals, n, 0).unwrap();
    }
    assert_eq!(ask(&mut approvals, 99, 1), Err(AskRefusal::TooManyWaiting));
    for number in 1..=10 {
        approvals.answer(number, Decision::Allowed, None).unwrap();
    }
    for n in 10..REQUESTS_IN_WINDOW {
        ask(&mut approvals, n, 10).unwrap();
        approvals
            .answer(u32::try_from(n).unwrap() + 1, Decision::Denied, None)
            .unwrap();
    }
    let late = ask(&mut approvals, 99, 100);
    assert_eq!(late, Err(AskRefusal::TooManyLately { wait: at(3500) }));
    assert!(ask(&mut approvals, 99, 3600).is_ok());
}

#[test]
fn a_question_that_nobody_answers_expires() {
    let mut approvals = Approvals::default();
    approvals
        .ask(plea(&["a.example"], "t"), &Allowlist::default(), at(5))
        .unwrap();
    assert_eq!(approvals.next_expiry(), Some(at(5) + REQUEST_WAIT));
    assert_eq!(approvals.expire(at(4) + REQUEST_WAIT), []);
    let ended = approvals.expire(at(5) + REQUEST_WAIT);
    assert_eq!(ended[0].tasks, ["t"]);
    let late = approvals.answer(1, Decision::Allowed, None);
    assert_eq!(
        late,
        Err(AnswerError::Ended {
            number: 1,
            decision: Decision::Expired
        })
    );
}

proptest! {
    /// Whatever comes in whatever order: each call that was taken is told one end, once, and none that was not.
    #[test]
    fn every_order_of_events_ends_each_call_once(steps in proptest::collection::vec((0..4u8, 0..30u32, 0..6usize), 1..120)) {
        let (mut approvals, none) = (Approvals::default(), Allowlist::default());
        let (mut waiting, mut told, mut now) = (BTreeSet::new(), BTreeSet::new(), 0);
        let mut tell = |settled: Vec<Settled>| for one in settled {
            assert!(matches!(one.request.state, State::Ended { .. }));
            for task in one.tasks {
                assert!(told.insert(task), "told twice");
            }
        };
        for (step, (kind, number, host)) in steps.into_iter().enumerate() {
            match kind {
                0 | 1 => {
                    let task = format!("t{step}");
                    let asked = approvals.ask(plea(&[&format!("h{host}.example")], &task), &none, at(now));
                    if matches!(asked, Ok(Asked::New(_) | Asked::Joined(_))) {
                        waiting.insert(task);
                    }
                }
                2 => {
                    let decision = if host % 2 == 0 { Decision::Allowed } else { Decision::Denied };
                    tell(approvals.answer(number, decision, None).into_iter().collect());
                }
                _ => {
                    now += u64::from(number) * 200;
                    tell(approvals.expire(at(now)));
                }
            }
            prop_assert!(approvals.waiting().count() <= REQUESTS_WAITING);
            prop_assert!(approvals.all().count() <= REQUESTS_LISTED + 1);
        }
        tell(approvals.expire_all());
        prop_assert_eq!(waiting, told);
    }
}
