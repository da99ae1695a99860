//! The tasks of schedules.

use super::*;
use tierbar_core::{Code, config::ScheduleConfig};
use tierbar_jobs::tasks::scheduled;

fn schedule(task: &str, words: u32) -> ScheduleConfig {
    let schedule = json!({
        "at": "02:00", "task": task, "source": "~/a", "to": "~/b.md", "model": "fast", "words": words,
    });
    serde_json::from_value(schedule).unwrap()
}

#[tokio::test]
async fn a_schedules_task_has_its_model_and_its_words() {
    let line = "{\"level\": \"error\", \"message\": \"The disk is full.\"}\n";
    for (task, text, field) in [
        ("summarize", "A text.", "summary"),
        ("brief", line, "brief"),
    ] {
        let (bench, requests) =
            scripted(|_, request| says_text(request, "The disk is full.")).await;
        let jobs = Arc::clone(&bench.runner.as_ref().unwrap().jobs);
        let answer = scheduled::run(&jobs, &schedule(task, 40), text.to_owned()).await;
        let answer = answer.unwrap();
        assert_eq!(answer[field], "The disk is full.");
        assert_eq!(answer["tier"], "fast");
        let asked = requests.all()[0].to_string();
        assert!(asked.contains("40 words"), "{asked}");
        let refused = scheduled::run(&jobs, &schedule(task, 3), text.to_owned()).await;
        assert_eq!(refused.unwrap_err().code, Code::BadRequest);
    }
}
