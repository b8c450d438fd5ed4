//! Letting go (rule 20).

use super::notices;
use crate::engine::decide;
use crate::engine::fixture::{rolling, settled};
use crate::world::Action;

/// Rule 20
#[test]
fn a_deleted_object_lets_go_and_puts_the_users_setting_back() {
    let mut world = settled();
    world.deleting = true;
    assert_eq!(decide(&world).action, Some(Action::LetGo(Some("0".into()))));
    let mut world = rolling(1);
    world.deleting = true;
    let decision = decide(&world);
    assert_eq!(decision.action, Some(Action::LetGo(None)));
    assert_eq!(notices(&decision), ["RolloutFrozen"]);
}

/// Rule 20: a version that waits behind the guard is not released with it.
#[test]
fn a_deleted_object_keeps_a_version_that_waits_where_it_is() {
    let mut world = settled();
    world.template("b");
    world.deleting = true;
    let decision = decide(&world);
    assert_eq!(decision.action, Some(Action::LetGo(None)));
    assert_eq!(notices(&decision), ["RolloutFrozen"]);
}
