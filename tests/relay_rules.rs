//! Which test holds which rule of the relay protocol, so that none is held by nobody.

use std::fs;

/// The rule, and the test that holds it: file and name.
const RULES: &[(&str, &str, &str)] = &[
    // --- names and secrets
    (
        "a session id has 8 characters of Crockford base32",
        "src/relay/tokens.rs",
        "what_is_made_is_what_is_read",
    ),
    (
        "a token is as_<id>_<22 base64url>, case matters, nothing is decoded",
        "src/relay/tokens.rs",
        "malformed_tokens_are_none",
    ),
    (
        "the resume secret has 43 characters and is compared in constant time",
        "src/relay/tokens.rs",
        "only_the_secret_itself_matches",
    ),
    (
        "an app id is [A-Za-z0-9_.-]{1,64}",
        "src/relay/registration.rs",
        "ids_and_tools_are_checked_as_the_relay_does",
    ),
    // --- HTTP, in the order of the checks
    (
        "/v1/_ws exactly; no upgrade 400, a bad session 400; an upgrade on an agent address 400",
        "tests/relay_http.rs",
        "upgrades_are_judged_in_order",
    ),
    (
        "over 100 upgrades in 10 s 429, refused attempts count",
        "tests/relay_http.rs",
        "the_hundred_and_first_upgrade_in_ten_seconds_is_refused",
    ),
    (
        "the window of the rate slides",
        "src/relay/embedded/rate.rs",
        "an_address_has_a_hundred_attempts_in_ten_seconds",
    ),
    (
        "malformed token 404, no session 503, unknown or revoked 401",
        "tests/relay_http.rs",
        "malformed_unknown_and_revoked_tokens_are_told_apart",
    ),
    (
        "1 MiB passes, one more is 413, before the token and after its form",
        "tests/relay_http.rs",
        "a_body_passes_to_the_last_byte_and_is_judged_before_the_token",
    ),
    (
        "agents.md and tools.json answer any method, exactly; other /_as_ 404",
        "tests/relay_http.rs",
        "documents_answer_any_method_at_exactly_their_path",
    ),
    (
        "Sec-Fetch-Site not none 403, unknown paths included, documents exempt",
        "tests/relay_http.rs",
        "web_pages_may_read_documents_and_call_nothing",
    ),
    (
        "held 503 with Retry-After before the tool is looked up",
        "tests/relay_hold.rs",
        "a_session_is_held_after_any_close_but_1000",
    ),
    (
        "offline for 45 s, 12 min, 3 h",
        "src/relay/embedded/denied.rs",
        "spans_are_said_as_people_say_them",
    ),
    (
        "100 in flight over all tokens 429, before the tool is looked up; then 404",
        "tests/relay_calls.rs",
        "the_hundred_and_first_call_in_flight_is_refused_before_its_tool_is_looked_up",
    ),
    (
        "no reply in time 504, a late or unknown reply is dropped",
        "tests/relay_calls.rs",
        "a_call_without_a_reply_times_out_and_a_late_reply_is_dropped",
    ),
    (
        "an agent that hangs up keeps its place",
        "tests/relay_calls.rs",
        "an_agent_that_hangs_up_keeps_its_place_until_the_timeout",
    ),
    (
        "queries are dropped, dot segments resolved, escapes stay",
        "src/relay/embedded/http.rs",
        "dot_segments_are_resolved_and_escapes_stay",
    ),
    (
        "HEAD does not reach a GET tool; no preflight",
        "tests/relay_calls.rs",
        "a_head_request_does_not_reach_a_get_tool",
    ),
    (
        "another Host is refused",
        "tests/relay_http.rs",
        "another_hosts_name_is_refused",
    ),
    (
        "GET / says what this is",
        "tests/relay_http.rs",
        "the_front_page_says_what_this_is",
    ),
    // --- calls
    (
        "method, path, body as UTF-8 with U+FFFD, content-type and x- headers, joined, lower-case",
        "tests/relay_calls.rs",
        "a_call_carries_method_path_body_and_allowed_headers",
    ),
    (
        "x-real-ip and x-forwarded-* never go on",
        "src/relay/embedded/agent.rs",
        "only_the_content_type_and_the_agents_own_headers_go_on",
    ),
    (
        "a string with a content type goes out as it is, else JSON; other headers dropped; nosniff and CSP; no CORS",
        "tests/relay_calls.rs",
        "replies_become_responses_by_the_rule",
    ),
    (
        "html, svg, xml and +xml go out as text/plain",
        "src/relay/embedded/answers.rs",
        "what_a_browser_would_run_goes_out_as_plain_text",
    ),
    (
        "a status outside 200-599, no integer, or a bad task id gives 502",
        "tests/relay_calls.rs",
        "replies_that_make_no_response_give_502",
    ),
    (
        "204, 205 and 304 want no body, null included",
        "src/relay/embedded/answers.rs",
        "a_status_without_a_body_gets_none",
    ),
    (
        "errors carry nosniff but no CSP; Retry-After only where held",
        "src/relay/embedded/denied.rs",
        "only_a_held_session_says_when_to_retry",
    ),
    (
        "a body of 1 MiB of control characters arrives: frames of 8 MiB",
        "tests/relay_endurance.rs",
        "a_call_of_six_million_characters_arrives_whole",
    ),
    // --- tasks
    (
        "pending, once, then 404; wrong answers dropped; twice is the same; HEAD consumes",
        "tests/relay_calls.rs",
        "tasks_are_pending_then_given_once_then_gone",
    ),
    (
        "100 tasks, then 503 too_many_tasks",
        "tests/relay_calls.rs",
        "the_hundred_and_first_task_is_refused",
    ),
    (
        "finished tasks count; a live id begins again",
        "src/relay/embedded/tasks.rs",
        "finished_tasks_count_until_they_are_fetched_and_a_live_id_begins_again",
    ),
    // --- documents
    (
        "tools.json keeps the order of keys and of registration",
        "src/relay/embedded/app.rs",
        "tools_json_has_the_protocols_order_of_keys",
    ),
    (
        "an absent schema stays absent, null stays",
        "src/relay/tool.rs",
        "a_list_keeps_its_order_its_keys_and_its_schemas_as_they_came",
    ),
    (
        "the preamble, marker to rule, for briefings with neither marker",
        "src/relay/embedded/preamble.rs",
        "only_a_briefing_with_neither_marker_gets_the_preamble",
    ),
    // --- registration
    (
        "checked in the order app id, briefing, tools; codes and closes",
        "src/relay/embedded/app.rs",
        "a_registration_is_judged_in_order",
    ),
    (
        "4001, 4413, 4400",
        "tests/relay_sessions.rs",
        "bad_registrations_are_refused_with_a_code_and_a_close",
    ),
    (
        "paths by the rule, reserved ones in any case",
        "src/relay/tool.rs",
        "paths_are_judged_by_the_rule",
    ),
    (
        "session id and secret in the reply",
        "tests/relay_sessions.rs",
        "a_registration_tells_who_we_are",
    ),
    (
        "before register only pings; mint, revoke, list get protocol_error; a second register changes nothing",
        "tests/relay_sessions.rs",
        "before_registration_only_pings_are_answered",
    ),
    (
        "no first frame in time 4408",
        "tests/relay_sessions.rs",
        "a_socket_without_a_first_frame_is_closed",
    ),
    (
        "cuts count UTF-16 units",
        "src/relay/units.rs",
        "a_cut_counts_units_and_keeps_characters_whole",
    ),
    // --- frames
    (
        "mint, label cut, url with __BASE__, expiresAt null, list, 50 at most, revoke once",
        "tests/relay_sessions.rs",
        "links_are_minted_cut_listed_and_counted",
    ),
    (
        "update_tools: all or nothing; tools must be there; null briefing an error; no string id ignored",
        "tests/relay_sessions.rs",
        "an_update_replaces_the_tools_or_changes_nothing",
    ),
    (
        "not JSON and unknown types ignored; binary read as text; ids echoed",
        "tests/relay_sessions.rs",
        "frames_are_read_leniently_and_ids_echoed_as_they_are",
    ),
    (
        "4,194,304 units pass, one more is 1009 and ends the session",
        "tests/relay_sessions.rs",
        "a_frame_passes_to_the_last_character_and_one_more_ends_the_session",
    ),
    (
        "on a waiting socket only the socket",
        "tests/relay_sessions.rs",
        "an_oversized_frame_on_a_waiting_socket_closes_only_that_socket",
    ),
    (
        "only JSON objects, arrays and the heartbeat count as life; 4408 holds",
        "tests/relay_sessions.rs",
        "only_frames_that_are_json_count_as_life",
    ),
    // --- the life of a session
    (
        "any close but 1000 holds",
        "tests/relay_hold.rs",
        "a_session_is_held_after_any_close_but_1000",
    ),
    (
        "calls in flight fail, links and tasks stay, the new registration counts, same secret",
        "tests/relay_hold.rs",
        "calls_in_flight_fail_when_the_app_goes_and_links_and_tasks_stay",
    ),
    (
        "revokeTokens die first",
        "tests/relay_hold.rs",
        "links_named_in_a_resume_die_before_the_app_is_live",
    ),
    (
        "wrong secret, ended and unknown look the same: resume_failed, 4401",
        "tests/relay_hold.rs",
        "wrong_secrets_and_unknown_sessions_look_the_same",
    ),
    (
        "the registration is judged before the secret",
        "tests/relay_hold.rs",
        "a_resume_judges_the_registration_before_the_secret",
    ),
    (
        "a socket still attached gets 4410, its calls 503",
        "tests/relay_hold.rs",
        "a_resume_takes_a_live_session_over",
    ),
    (
        "4 sockets wait, the next gets 4409",
        "tests/relay_hold.rs",
        "the_fifth_socket_that_waits_on_a_session_is_refused",
    ),
    (
        "end ends held and live sessions",
        "tests/relay_hold.rs",
        "end_ends_a_held_and_a_live_session_at_once",
    ),
    (
        "the hold ends",
        "tests/relay_hold.rs",
        "a_session_is_forgotten_when_the_hold_is_over",
    ),
    (
        "a revoked link's call in flight ends well",
        "tests/relay_hold.rs",
        "a_link_revoked_during_a_call_lets_the_call_end_and_no_other_begin",
    ),
    (
        "tool timeout, liveness and hold are what the relay was told",
        "tests/relay_short.rs",
        "a_relay_with_short_limits_behaves_as_the_contract_says",
    ),
    // --- what a client should do
    (
        "task answers come, and links stay, through fifty cuts",
        "tests/relay_endurance.rs",
        "a_session_survives_fifty_random_cuts_under_load",
    ),
    (
        "measure every frame before it is sent",
        "src/relay/frames/mod.rs",
        "a_frame_passes_to_the_last_unit_and_not_beyond",
    ),
    (
        "a registration fits, a resume's additions included",
        "src/relay/registration.rs",
        "tools_that_would_burst_the_frame_are_refused_here",
    ),
    (
        "task answers that the relay would drop are not sent",
        "src/relay/frames/body.rs",
        "a_task_answer_that_the_relay_would_drop_is_refused_here",
    ),
    (
        "the exact heartbeat; no sign of life drops the connection",
        "tests/relay_faults.rs",
        "a_half_open_connection_is_given_up_and_heartbeats_are_exact",
    ),
    (
        "wait for the reply for a time",
        "tests/relay_faults.rs",
        "a_reply_that_never_comes_is_not_waited_for",
    ),
    (
        "1, 2, 4 … 30 s with 25 % jitter",
        "src/relay/link/backoff.rs",
        "pauses_double_up_to_the_cap_and_begin_again",
    ),
    (
        "a refused resume: register anew, mint again, tell the owner",
        "tests/relay_faults.rs",
        "a_refused_resume_makes_every_link_again_and_tells_the_owner",
    ),
    (
        "on 4410 stop",
        "tests/relay_endings.rs",
        "a_session_that_somebody_took_over_is_left_alone",
    ),
    (
        "revocations made while away go into revokeTokens",
        "tests/relay_faults.rs",
        "what_is_done_while_away_is_told_in_the_resume",
    ),
    (
        "close with 1000, or end where away",
        "tests/relay_endings.rs",
        "closing_says_1000_where_it_is_up_and_end_where_it_is_away",
    ),
    (
        "task answers are sent again",
        "tests/relay_faults.rs",
        "task_answers_are_sent_again_after_every_reconnect_and_late_replies_are_not",
    ),
];

#[test]
fn every_rule_has_a_test_that_exists() {
    let missing: Vec<_> = RULES
        .iter()
        .filter(|(_, file, test)| {
            let source = fs::read_to_string(file).unwrap_or_default();
            !source.contains(&format!("fn {test}("))
        })
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}
