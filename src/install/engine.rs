//! Carries out a plan, forward or back, a journal's line before and after each effect.

use super::action::{Action, Error, Standing, Was};
use super::journal::{Journal, Record, Run};
use super::plan;
use super::tripwire::passed;

/// Told what is done, one line each.
pub type Tell<'a> = &'a mut dyn FnMut(&str);

/// Makes everything of a plan that is not as it should be. It takes up what a killed run has left: each thing is looked
/// at again, whatever the journal says of it.
pub(super) fn forward(
    journal: &mut Journal,
    run: Run,
    actions: &[Action],
    tell: Tell<'_>,
) -> Result<(), Error> {
    for action in actions {
        make(journal, action, tell)?;
    }
    let old = plan::superseded(journal.ledger(), actions);
    if run == Run::Update && !old.is_empty() {
        journal.write(Record::Committed)?;
        for (id, action) in old {
            tell(&format!("remove {}", action.step().thing()));
            action.step().remove()?;
            passed();
            journal.write(Record::Undone { id })?;
        }
    }
    journal.write(Record::Ended)
}

fn make(journal: &mut Journal, action: &Action, tell: Tell<'_>) -> Result<(), Error> {
    let step = action.step();
    let thing = step.thing();
    let open = journal
        .ledger()
        .of_this_run()
        .find(|entry| entry.did.step().thing() == thing)
        .map(|entry| (entry.id, entry.done));
    let id = match (step.inspect()?, open) {
        (Standing::Same, Some((id, false))) => return journal.write(Record::Done { id }),
        (Standing::Same, _) => return Ok(()),
        (_, Some((id, _))) => id,
        (Standing::Absent, None) => journal.before(action.clone(), Was::Absent)?,
        (Standing::Different { content, .. }, None) if journal.ledger().is_ours(&thing) => {
            journal.before(action.clone(), Was::Ours(content))?
        }
        (Standing::Different { why, .. }, None) => return Err(Error::NotProven(why)),
    };
    tell(&step.describe());
    step.apply()?;
    passed();
    journal.write(Record::Done { id })
}

/// Takes back what an unfinished update has done: old things are put back, new ones are gone.
pub(super) fn back(journal: &mut Journal, tell: Tell<'_>) -> Result<(), Error> {
    let done: Vec<_> = journal.ledger().of_this_run().rev().cloned().collect();
    for entry in done {
        tell(&format!("take back: {}", entry.did.step().describe()));
        entry.did.undo(&entry.was)?;
        passed();
        journal.write(Record::Undone { id: entry.id })?;
    }
    journal.write(Record::Ended)
}

/// Removes everything that is ours, newest first, so that the account goes last. What an update has only changed is
/// removed where it was made.
pub(super) fn remove_all(journal: &mut Journal, tell: Tell<'_>) -> Result<(), Error> {
    let standing: Vec<_> = journal.ledger().standing().rev().cloned().collect();
    for entry in standing {
        if entry.was == Was::Absent {
            tell(&format!("remove {}", entry.did.step().thing()));
            entry.did.step().remove()?;
            passed();
        }
        journal.write(Record::Undone { id: entry.id })?;
    }
    Ok(())
}
