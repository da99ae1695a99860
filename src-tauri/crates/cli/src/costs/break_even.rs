//! `tierbar costs break-even`: after how many months a machine has paid for itself. Each figure is given, configured or measured.

use super::{fetch_month, format_dollars};
use crate::{
    client::{Client, read_answer},
    measure::render_table,
    output,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tierbar_core::{Error, bad_request, ledger::LedgerReport};
use tierbar_measure::break_even::{BreakEven, BreakEvenInputs};

#[derive(Debug, Serialize, clap::Args)]
pub(super) struct Args {
    /// Price of the machine in US dollars, or what it costs more than one you would have anyway [default:
    /// costs.machine_price]
    #[arg(long, value_name = "DOLLARS")]
    machine_price: Option<f64>,
    /// Power of the machine while idle [default: costs.idle_watts]
    #[arg(long, value_name = "WATTS")]
    idle_watts: Option<f64>,
    /// Power of the machine while it answers [default: costs.busy_watts]
    #[arg(long, value_name = "WATTS")]
    busy_watts: Option<f64>,
    /// Hours a day that the machine is on for this
    #[arg(long, value_name = "HOURS")]
    hours_on: Option<f64>,
    /// Hours of these that it spends answering
    #[arg(long, value_name = "HOURS")]
    hours_busy: Option<f64>,
    /// Price of a kilowatt-hour [default: costs.kwh_price]
    #[arg(long, value_name = "DOLLARS")]
    kwh_price: Option<f64>,
    /// Prompt tokens a day [default: yours of the last 30 days]
    #[arg(long, value_name = "TOKENS")]
    prompt_tokens: Option<f64>,
    /// Answer tokens a day [default: yours of the last 30 days]
    #[arg(long, value_name = "TOKENS")]
    answer_tokens: Option<f64>,
    /// Cloud price of a million prompt tokens [default: costs.cloud_input_price]
    #[arg(long, value_name = "DOLLARS")]
    cloud_input_price: Option<f64>,
    /// Cloud price of a million answer tokens [default: costs.cloud_output_price]
    #[arg(long, value_name = "DOLLARS")]
    cloud_output_price: Option<f64>,
    /// Share of the tokens that local models can handle, from 0 to 1
    #[arg(long, value_name = "SHARE")]
    local_share: Option<f64>,
}

/// The options and their labels. Each is a field of [`BreakEvenInputs`].
const FIGURES: [(&str, &str); 11] = [
    ("machine_price", "Machine, $"),
    ("idle_watts", "Idle, W"),
    ("busy_watts", "Answering, W"),
    ("hours_on", "On, hours a day"),
    ("hours_busy", "Answering, hours a day"),
    ("kwh_price", "Kilowatt-hour, $"),
    ("prompt_tokens", "Prompt tokens a day"),
    ("answer_tokens", "Answer tokens a day"),
    ("cloud_input_price", "Cloud, million prompt tokens, $"),
    ("cloud_output_price", "Cloud, million answer tokens, $"),
    ("local_share", "Share that is local"),
];

pub(super) async fn run(client: &Client, args: &Args, as_json: bool) -> Result<(), Error> {
    let configured = client.get("/tierbar/v1/config").await?;
    let configured = &configured["config"]["costs"];
    let measured = fetch_month(client).await?;
    let mut inputs = Map::new();
    let mut rows = Vec::new();
    let mut missing = Vec::new();
    for (name, label) in FIGURES {
        let Some((value, source)) = find(name, &json!(args), configured, &measured) else {
            missing.push(format!("--{}", name.replace('_', "-")));
            continue;
        };
        inputs.insert(name.to_owned(), json!(value));
        rows.push([label.to_owned(), value.to_string(), source]);
    }
    if !missing.is_empty() {
        let message = "some figures are missing, and Tierbar assumes none";
        let hint = format!("add {}", missing.join(", "));
        return Err(bad_request(message).hint(hint));
    }
    let path = "/tierbar/v1/costs/break-even";
    let inputs = Value::Object(inputs);
    let sum = client.post(path, &inputs).await?;
    if as_json {
        output::write_json(&json!({"inputs": inputs, "sum": sum}));
        return Ok(());
    }
    let (inputs, sum): (BreakEvenInputs, BreakEven) = (read_answer(inputs)?, read_answer(sum)?);
    output::write(&render_table(&rows, &[1]));
    output::write(&format!("\n{}", render(&inputs, &sum)));
    Ok(())
}

/// The figure, and where it comes from: the options, `costs` in the configuration, or the ledger.
fn find(
    name: &str,
    given: &Value,
    configured: &Value,
    measured: &LedgerReport,
) -> Option<(f64, String)> {
    if let Some(value) = given[name].as_f64() {
        return Some((value, "given".to_owned()));
    }
    if let Some(value) = configured[name].as_f64() {
        return Some((value, format!("costs.{name}")));
    }
    let tokens = match name {
        "prompt_tokens" => measured.text_tokens(|costs| costs.prompt_tokens),
        "answer_tokens" => measured.text_tokens(|costs| costs.completion_tokens),
        _ => return None,
    };
    let source = match measured.days {
        0 => return None,
        1 => "yours, of one day".to_owned(),
        days => format!("yours, of {days} days"),
    };
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let a_day = tokens as f64 / f64::from(measured.days);
    Some((a_day.round(), source))
}

fn render(inputs: &BreakEvenInputs, sum: &BreakEven) -> String {
    let money = |dollars| format_dollars(Some(dollars));
    let electricity = format!("{} ({:.1} kWh)", money(sum.electricity), sum.kwh);
    let rows = [
        ("All tokens in the cloud, a month", money(sum.cloud)),
        ("Of that, done locally", money(sum.avoided)),
        ("Electricity, a month", electricity),
        ("Saved, a month", money(sum.saved)),
    ];
    let rows = rows.map(|(label, value)| [label.to_owned(), value]);
    let price = money(inputs.machine_price);
    let end = match sum.months {
        Some(months) => {
            format!("The machine has paid for itself ({price}) after {months:.1} months.")
        }
        None => format!("By these figures, the machine ({price}) never pays for itself."),
    };
    format!("{}\n{end}\n", render_table(&rows, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::ledger::{LedgerEntry, RequestCosts};

    fn measured(days: u32) -> LedgerReport {
        let costs = RequestCosts {
            prompt_tokens: 3000,
            ..RequestCosts::default()
        };
        let entry = LedgerEntry {
            day: "2026-11-26".to_owned(),
            tier: "fast".to_owned(),
            elsewhere: false,
            client: None,
            chain: None,
            costs,
        };
        LedgerReport {
            entries: vec![entry],
            total: costs,
            days,
        }
    }

    #[test]
    fn each_figure_says_where_it_comes_from() {
        let (none, configured) = (json!({}), json!({"idle_watts": 5.0}));
        for (name, given, days, found) in [
            (
                "idle_watts",
                &json!({"idle_watts": 7.0}),
                3,
                Some((7.0, "given")),
            ),
            ("idle_watts", &none, 3, Some((5.0, "costs.idle_watts"))),
            (
                "prompt_tokens",
                &none,
                3,
                Some((1000.0, "yours, of 3 days")),
            ),
            ("prompt_tokens", &none, 0, None),
            ("hours_on", &none, 3, None),
            ("busy_watts", &none, 3, None),
        ] {
            let found = found.map(|(value, source): (f64, &str)| (value, source.to_owned()));
            assert_eq!(
                find(name, given, &configured, &measured(days)),
                found,
                "{name}"
            );
        }
    }

    #[test]
    fn every_figure_is_an_input_of_the_sum() {
        let args = Args {
            machine_price: Some(600.0),
            idle_watts: Some(5.0),
            busy_watts: Some(35.0),
            hours_on: Some(24.0),
            hours_busy: Some(4.0),
            kwh_price: Some(0.25),
            prompt_tokens: Some(500_000.0),
            answer_tokens: Some(250_000.0),
            cloud_input_price: Some(2.5),
            cloud_output_price: Some(10.0),
            local_share: Some(0.5),
        };
        let args = json!(args);
        let names: Vec<_> = args.as_object().unwrap().keys().collect();
        assert_eq!(names, FIGURES.map(|(name, _)| name));
        let inputs: BreakEvenInputs = serde_json::from_value(args).unwrap();
        let sum = inputs.sum().unwrap();
        let text = render(&inputs, &sum);
        assert!(text.contains("after 10.9 months"), "{text}");
        assert!(text.contains("(7.3 kWh)"), "{text}");
    }
}
