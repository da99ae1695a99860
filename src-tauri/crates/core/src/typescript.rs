//! The wire types' TypeScript twins: `ui/src/platform/api.ts` is what this writes, and the test fails when it differs.

use crate::{
    bench, budget, catalog, chain, chat, config, download, fit, journal, model, policy, queue,
    status, tier, tune,
};
use ts_rs::{Config, TS};

#[test]
fn the_typescript_types_match_the_wire() {
    let cfg = Config::default();
    let types = [
        tier::TierId::decl(&cfg),
        tier::TierState::decl(&cfg),
        model::ModelId::decl(&cfg),
        model::KvAccount::decl(&cfg),
        model::ModelAccount::decl(&cfg),
        status::Pressure::decl(&cfg),
        status::Ram::decl(&cfg),
        status::Swap::decl(&cfg),
        status::Speed::decl(&cfg),
        status::BudgetStatus::decl(&cfg),
        status::EngineKind::decl(&cfg),
        policy::Alarm::decl(&cfg),
        policy::Stance::decl(&cfg),
        status::GuardStatus::decl(&cfg),
        status::TierStatus::decl(&cfg),
        status::Status::decl(&cfg),
        download::DownloadState::decl(&cfg),
        download::Priority::decl(&cfg),
        download::DownloadStatus::decl(&cfg),
        budget::Placement::decl(&cfg),
        budget::LoadPlan::decl(&cfg),
        fit::LineKind::decl(&cfg),
        fit::Line::decl(&cfg),
        fit::GpuShare::decl(&cfg),
        fit::SpeedEstimate::decl(&cfg),
        fit::Instead::decl(&cfg),
        fit::Verdict::decl(&cfg),
        fit::Keeper::decl(&cfg),
        fit::LibraryModel::decl(&cfg),
        catalog::ModelKind::decl(&cfg),
        catalog::OfferedFile::decl(&cfg),
        catalog::CatalogModel::decl(&cfg),
        catalog::HubModel::decl(&cfg),
        catalog::HubRepository::decl(&cfg),
        config::Span::decl(&cfg),
        config::QuietHours::decl(&cfg),
        config::IdleUnload::decl(&cfg),
        config::KvCache::decl(&cfg),
        config::MaxLoaded::decl(&cfg),
        config::PolicyConfig::decl(&cfg),
        config::LibraryConfig::decl(&cfg),
        config::DownloadsConfig::decl(&cfg),
        config::QueueConfig::decl(&cfg),
        config::Size::decl(&cfg),
        config::StopSignal::decl(&cfg),
        config::CommandEngine::decl(&cfg),
        config::Dollars::decl(&cfg),
        config::Dialect::decl(&cfg),
        config::EndpointEngine::decl(&cfg),
        config::Engine::decl(&cfg),
        config::TierConfig::decl(&cfg),
        config::Step::decl(&cfg),
        config::ChainConfig::decl(&cfg),
        config::ServerConfig::decl(&cfg),
        config::LogConfig::decl(&cfg),
        config::TimeOfDay::decl(&cfg),
        config::Weekday::decl(&cfg),
        config::ScheduledTask::decl(&cfg),
        config::ScheduleConfig::decl(&cfg),
        config::Config::decl(&cfg),
        bench::Settings::decl(&cfg),
        bench::Figure::decl(&cfg),
        bench::BenchRow::decl(&cfg),
        bench::BenchMemory::decl(&cfg),
        bench::BenchReport::decl(&cfg),
        bench::Progress::decl(&cfg),
        tune::Knob::decl(&cfg),
        tune::Outcome::decl(&cfg),
        tune::TuneRow::decl(&cfg),
        tune::TuneReport::decl(&cfg),
        journal::Kind::decl(&cfg),
        journal::LogEvent::decl(&cfg),
        journal::Entry::decl(&cfg),
        chain::Gate::decl(&cfg),
        chain::StepStatus::decl(&cfg),
        chain::ChainStatus::decl(&cfg),
        queue::JobState::decl(&cfg),
        queue::WebhookState::decl(&cfg),
        queue::JobStatus::decl(&cfg),
        chat::Role::decl(&cfg),
        chat::Finish::decl(&cfg),
        chat::AnswerFacts::decl(&cfg),
        chat::Attachment::decl(&cfg),
        chat::WebSource::decl(&cfg),
        chat::Part::decl(&cfg),
        chat::ChatMessage::decl(&cfg),
        chat::ChatSummary::decl(&cfg),
        chat::Chat::decl(&cfg),
        chat::TurnStage::decl(&cfg),
        chat::TurnEvent::decl(&cfg),
        chat::TurnBegun::decl(&cfg),
    ];
    let mut text =
        String::from("// Generated from src-tauri/crates/core by its tests. Do not edit: run\n");
    text.push_str("// TIERBAR_WRITE_TYPES=1 cargo test -p tierbar-core typescript\n");
    for declaration in types {
        text.push_str("\nexport ");
        text.push_str(&declaration);
        text.push('\n');
    }
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../ui/src/platform/api.ts"
    );
    if std::env::var_os("TIERBAR_WRITE_TYPES").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        text,
        "{path} is out of date"
    );
}
