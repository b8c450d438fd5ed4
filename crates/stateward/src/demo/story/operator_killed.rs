//! The operator is killed during a rollout, and no state is lost.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use stateward_cli::Exit;

use super::{FIRST, GOOD, Story};

impl Story<'_> {
    pub(super) async fn operator_killed(&mut self) -> Result<()> {
        self.a_database(5).await?;
        let steps = json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 60}]);
        self.a_plan(
            steps,
            "20 % first, then a pause until a user has looked, 60 %, the rest",
        )
        .await?;
        self.teller.typed("kill -9 $(pidof stateward)")?;
        self.scene.kill_operator();
        self.teller.tell("the operator is gone, its guard is not")?;
        self.set_image(GOOD).await?;
        self.stays(Duration::from_secs(60), "every pod", |sight| {
            sight.versions() == [FIRST; 5] && sight.ready() == 5
        })
        .await?;
        self.teller
            .tell("a minute later: no decision was made, so no pod has changed")?;
        self.scene.start_operator();
        self.teller
            .tell("the operator is back, and knows all from the object's status")?;
        self.until("the first step", |sight| sight.partition == Some(4))
            .await?;
        self.teller
            .tell("step 1 of 3, 20 %: it releases one pod, partition 4")?;
        self.scene.kill_operator();
        self.teller.tell("and is killed once more, right then")?;
        self.see_updated("db-4", GOOD).await?;
        self.stays(Duration::from_secs(60), "one new pod", |sight| {
            sight.versions() == [FIRST, FIRST, FIRST, FIRST, GOOD]
        })
        .await?;
        self.teller.tell("what was released has come, and nothing else")?;
        self.scene.start_operator();
        self.until("the pause", |sight| sight.status.phase == "Paused")
            .await?;
        self.teller
            .tell("back again: step 2 of 3, the pause, is not skipped")?;
        self.run("promote db", Exit::Done).await?;
        self.until("the end of the rollout", |sight| {
            sight.status.phase == "Successful" && sight.partition == Some(5)
        })
        .await?;
        self.expect_versions([GOOD; 5])?;
        self.teller.tell("every pod runs the new version")
    }
}
