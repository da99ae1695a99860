//! `tierbar costs break-even`: after how many months a machine has paid for itself. Each figure is given, configured or measured.

use super::{fetch_ledger, format_dollars};
use crate::{
    client::{Client, admin_path, read},
    measure::render_table,
    output,
};
use serde_json::{Map, Value, json};
use tierbar_core::{
    Code, Error,
    ledger::{LedgerReport, RequestCosts},
};
use tierbar_measure::break_even::{BreakEven, BreakEvenInputs};

#[derive(Debug, clap::Args)]
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

/// A figure of the sum.
struct Figure {
    /// Its field in [`BreakEvenInputs`].
    name: &'static str,
    label: &'static str,
    given: Option<f64>,
    /// Where it comes from if it is not given.
    otherwise: FigureDefault,
}

enum FigureDefault {
    /// A key of `costs` with the same name.
    Configured,
    /// The tokens a day of the ledger.
    Measured(fn(&RequestCosts) -> u64),
    Nothing,
}

impl Args {
    fn figures(&self) -> [Figure; 11] {
        use FigureDefault::{Configured, Measured, Nothing};
        let figure = |name, label, given, otherwise| Figure {
            name,
            label,
            given,
            otherwise,
        };
        [
            figure(
                "machine_price",
                "Machine, $",
                self.machine_price,
                Configured,
            ),
            figure("idle_watts", "Idle, W", self.idle_watts, Configured),
            figure("busy_watts", "Answering, W", self.busy_watts, Configured),
            figure("hours_on", "On, hours a day", self.hours_on, Nothing),
            figure(
                "hours_busy",
                "Answering, hours a day",
                self.hours_busy,
                Nothing,
            ),
            figure("kwh_price", "Kilowatt-hour, $", self.kwh_price, Configured),
            figure(
                "prompt_tokens",
                "Prompt tokens a day",
                self.prompt_tokens,
                Measured(|costs| costs.prompt_tokens),
            ),
            figure(
                "answer_tokens",
                "Answer tokens a day",
                self.answer_tokens,
                Measured(|costs| costs.completion_tokens),
            ),
            figure(
                "cloud_input_price",
                "Cloud, million prompt tokens, $",
                self.cloud_input_price,
                Configured,
            ),
            figure(
                "cloud_output_price",
                "Cloud, million answer tokens, $",
                self.cloud_output_price,
                Configured,
            ),
            figure(
                "local_share",
                "Share that is local",
                self.local_share,
                Nothing,
            ),
        ]
    }
}

pub(super) async fn run(client: &Client, args: &Args, as_json: bool) -> Result<(), Error> {
    let configured = client.get(&admin_path(&["config"], &[])).await?;
    let configured = &configured["config"]["costs"];
    let measured: LedgerReport = read(fetch_ledger(client, 30).await?)?;
    let mut inputs = Map::new();
    let mut rows = Vec::new();
    let mut missing = Vec::new();
    for figure in args.figures() {
        let Some((value, source)) = find(&figure, configured, &measured) else {
            missing.push(format!("--{}", figure.name.replace('_', "-")));
            continue;
        };
        inputs.insert(figure.name.to_owned(), json!(value));
        rows.push(vec![figure.label.to_owned(), format_number(value), source]);
    }
    if !missing.is_empty() {
        let message = "some figures are missing, and Tierbar assumes none";
        let hint = format!("add {}", missing.join(", "));
        return Err(Error::new(Code::BadRequest, message).hint(hint));
    }
    let path = admin_path(&["costs", "break-even"], &[]);
    let inputs = Value::Object(inputs);
    let sum = client.post(&path, &inputs).await?;
    if as_json {
        output::write_line(&json!({"inputs": inputs, "sum": sum}).to_string());
        return Ok(());
    }
    let (inputs, sum): (BreakEvenInputs, BreakEven) = (read(inputs)?, read(sum)?);
    output::write(&render_table(&rows, &[1]));
    output::write(&format!("\n{}", render(&inputs, &sum)));
    Ok(())
}

/// The figure, and where it comes from.
fn find(figure: &Figure, configured: &Value, measured: &LedgerReport) -> Option<(f64, String)> {
    if let Some(given) = figure.given {
        return Some((given, "given".to_owned()));
    }
    match figure.otherwise {
        FigureDefault::Configured => {
            let value = configured[figure.name].as_f64()?;
            Some((value, format!("costs.{}", figure.name)))
        }
        FigureDefault::Measured(tokens) => {
            let days = f64::from(measured.days);
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            let tokens = measured.text_tokens(tokens) as f64;
            let source = match measured.days {
                1 => "yours, of one day".to_owned(),
                days => format!("yours, of {days} days"),
            };
            (measured.days > 0).then(|| ((tokens / days).round(), source))
        }
        FigureDefault::Nothing => None,
    }
}

fn render(inputs: &BreakEvenInputs, sum: &BreakEven) -> String {
    let money = |dollars| format_dollars(Some(dollars));
    let rows = [
        ("All tokens in the cloud, a month", money(sum.cloud)),
        ("Of that, done locally", money(sum.avoided)),
        (
            "Electricity, a month",
            format!("{} ({:.1} kWh)", money(sum.electricity), sum.kwh),
        ),
        ("Saved, a month", money(sum.saved)),
    ];
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(label, value)| vec![label.to_owned(), value])
        .collect();
    let price = money(inputs.machine_price);
    let end = match sum.months {
        Some(months) => {
            format!("The machine has paid for itself ({price}) after {months:.1} months.")
        }
        None => format!("By these figures, the machine ({price}) never pays for itself."),
    };
    format!("{}\n{end}\n", render_table(&rows, &[]))
}

fn format_number(value: f64) -> String {
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::ledger::LedgerEntry;

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

    fn figure(given: Option<f64>, otherwise: FigureDefault) -> Figure {
        Figure {
            name: "idle_watts",
            label: "Idle, W",
            given,
            otherwise,
        }
    }

    #[test]
    fn each_figure_says_where_it_comes_from() {
        let configured = json!({"idle_watts": 5.0});
        let tokens: fn(&RequestCosts) -> u64 = |costs| costs.prompt_tokens;
        for (figure, days, found) in [
            (
                figure(Some(7.0), FigureDefault::Configured),
                3,
                Some((7.0, "given")),
            ),
            (
                figure(None, FigureDefault::Configured),
                3,
                Some((5.0, "costs.idle_watts")),
            ),
            (
                figure(None, FigureDefault::Measured(tokens)),
                3,
                Some((1000.0, "yours, of 3 days")),
            ),
            (figure(None, FigureDefault::Measured(tokens)), 0, None),
            (figure(None, FigureDefault::Nothing), 3, None),
        ] {
            let found = found.map(|(value, source): (f64, &str)| (value, source.to_owned()));
            assert_eq!(find(&figure, &configured, &measured(days)), found);
        }
        assert_eq!(
            find(
                &figure(None, FigureDefault::Configured),
                &json!({}),
                &measured(1)
            ),
            None
        );
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
        let figures = args.figures().into_iter();
        let inputs: Map<String, Value> = figures
            .map(|figure| (figure.name.to_owned(), json!(figure.given)))
            .collect();
        let inputs: BreakEvenInputs = serde_json::from_value(inputs.into()).unwrap();
        let sum = inputs.sum().unwrap();
        let text = render(&inputs, &sum);
        assert!(text.contains("after 10.9 months"), "{text}");
        assert!(text.contains("(7.3 kWh)"), "{text}");
    }
}
