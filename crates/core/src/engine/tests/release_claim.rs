//! Releasing a workload (rule 20).

use rstest::rstest;

use super::notices;
use crate::engine::decide;
use crate::engine::fixture::{rolling, settled};
use crate::memory::Memory;
use crate::plan::{Fingerprint, Share};
use crate::workload::Claim;
use crate::world::{Action, LeftAs, World};

/// Rule 20
#[test]
fn a_deleted_object_lets_go_and_puts_the_users_setting_back() {
    let mut world = settled();
    world.deleting = true;
    assert_eq!(
        decide(&world).action,
        Some(Action::ReleaseClaim(LeftAs::BeforeAdoption("0".into())))
    );
    let mut world = rolling(1);
    world.deleting = true;
    let decision = decide(&world);
    assert_eq!(
        decision.action,
        Some(Action::ReleaseClaim(LeftAs::Frozen("0".into())))
    );
    assert_eq!(notices(&decision), ["RolloutFrozen"]);
}

/// Rule 20: after an abort the rejected version is not released with the guard.
#[test]
fn a_deleted_object_restores_the_template_after_an_abort() {
    let mut world = settled();
    world.template("b");
    world.memory.rejected = Some(super::rejection());
    world.deleting = true;
    let decision = decide(&world);
    assert_eq!(decision.action, Some(Action::Restore(Share::NONE)));
    assert_eq!(notices(&decision), ["TemplateRestored"]);
    let mut without_copy = world.clone();
    without_copy.can_restore = false;
    let frozen = Some(Action::ReleaseClaim(LeftAs::Frozen("0".into())));
    assert_eq!(decide(&without_copy).action, frozen);
    let mut still_there = world.clone();
    still_there.pods(["a", "a", "a", "a", "b"]);
    assert_eq!(decide(&still_there).action, frozen);
    for template in ["a", "b"] {
        let mut unseen = world.clone();
        unseen.view().template = Fingerprint::of(template);
        unseen.view().observed = false;
        assert_eq!(decide(&unseen).action, None);
    }
    world.template("a");
    let released = Some(Action::ReleaseClaim(LeftAs::BeforeAdoption("0".into())));
    assert_eq!(decide(&world).action, released);
}

/// Rule 20: a version that is held by the guard is not released with it.
#[test]
fn a_deleted_object_keeps_a_version_that_waits_where_it_is() {
    let mut world = settled();
    world.template("b");
    world.deleting = true;
    let decision = decide(&world);
    assert_eq!(
        decision.action,
        Some(Action::ReleaseClaim(LeftAs::Frozen("0".into())))
    );
    assert_eq!(notices(&decision), ["RolloutFrozen"]);
}

/// Rule 20, for an object whose workload only another operator has held.
#[rstest]
#[case::at_rest("a", Claim::Inherited, Some(Action::ReleaseClaim(LeftAs::BeforeAdoption("0".into()))), &[])]
#[case::in_the_middle("b", Claim::Inherited, Some(Action::ReleaseClaim(LeftAs::Frozen("0".into()))), &["RolloutFrozen"])]
#[case::not_its_own("a", Claim::Free, None, &[])]
fn a_deleted_object_lets_go_of_what_it_has_inherited(
    #[case] template: &str,
    #[case] claim: Claim,
    #[case] action: Option<Action>,
    #[case] told: &[&str],
) {
    let mut world = World {
        deleting: true,
        memory: Memory::default(),
        ..settled()
    };
    world.template(template);
    world.view().claim = claim;
    world.view().setting = "0".into();
    let decision = decide(&world);
    assert_eq!(decision.action, action);
    assert_eq!(notices(&decision), told);
}

/// Rule 20: a template that its controller has not observed yet would be released with the guard.
#[test]
fn a_template_that_has_just_changed_is_not_released() {
    let mut world = World {
        deleting: true,
        ..settled()
    };
    world.view().template = Fingerprint::of("b");
    world.view().observed = false;
    assert_eq!(
        decide(&world).action,
        Some(Action::ReleaseClaim(LeftAs::Frozen("0".into())))
    );
}

/// Rule 20: an object that references another workload now remembers that one, and a set may have been recreated with its claim.
#[rstest]
fn what_is_remembered_of_another_workload_says_nothing_of_this_one(
    #[values(Claim::Inherited, Claim::Ours)] claim: Claim,
) {
    let mut world = World {
        deleting: true,
        ..settled()
    };
    world.memory.setting = Some("3".into());
    world.template("b");
    world.current("b");
    world.view().claim = claim;
    world.view().setting = "0".into();
    world.view().uid = "another".into();
    assert_eq!(
        decide(&world).action,
        Some(Action::ReleaseClaim(LeftAs::BeforeAdoption("0".into())))
    );
}
