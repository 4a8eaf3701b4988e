//! A page with plots: rate and latencies over time, latency by percentile. It is one file and loads
//! nothing else. It contains the figures of its runs, so that the next run can be drawn beside
//! them.

use std::fmt::Write as _;

use plotters::prelude::*;

use super::saved_run::SavedRun;
use crate::Result;
use crate::measure::Figures;

const SIZE: (u32, u32) = (960, 320);

/// A line of a plot.
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

/// The page for these runs; `text_of_runs` is inserted unchanged.
pub fn page(title: &str, runs: &[SavedRun], text_of_runs: &str) -> Result<String> {
    let each_run = |of: &dyn Fn(&Figures) -> f64| -> Vec<Line> {
        let points = |run: &SavedRun| run.points.iter().map(|point| (point.at, of(point))).collect();
        runs.iter().map(|run| Line { name: run.name(), points: points(run) }).collect()
    };
    let curve = |run: &SavedRun| run.curve.iter().map(|point| (point.one_of.log10(), point.response_ms)).collect();
    let curves: Vec<Line> = runs.iter().map(|run| Line { name: run.name(), points: curve(run) }).collect();
    let plots = [
        ("Operations a second", plot(&each_run(&|point| point.per_second), "seconds", "op/s")?),
        ("Median latency", plot(&each_run(&|point| point.p50_ms), "seconds", "ms")?),
        ("99th percentile", plot(&each_run(&|point| point.p99_ms), "seconds", "ms")?),
        ("Longest", plot(&each_run(&|point| point.max_ms), "seconds", "ms")?),
        ("Latency that one operation of 10^x exceeds", plot(&curves, "x", "ms")?),
    ];
    let mut text = String::new();
    let title = escape(title);
    let _ = write!(
        text,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>body{{font-family:sans-serif;max-width:1100px;margin:auto}}\
         table{{border-collapse:collapse}}td,th{{padding:.2em .6em;text-align:right;border-bottom:1px solid #ccc}}</style></head>\n<body><h1>{title}</h1>\n"
    );
    table(&mut text, runs);
    for (heading, svg) in plots {
        let _ = writeln!(text, "<h2>{heading}</h2>\n{svg}");
    }
    text.push_str(text_of_runs);
    text.push_str("</body></html>\n");
    Ok(text)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn table(text: &mut String, runs: &[SavedRun]) {
    let heads =
        "revision server operation threads kind operations op/s mean_ms median 95th 99th 99.9th max errors retries";
    let head: String = heads.split(' ').map(|head| format!("<th>{}</th>", head.replace('_', " "))).collect();
    let _ = writeln!(text, "<table><tr>{head}</tr>");
    for run in runs {
        let total = ("total", &run.total);
        for (kind, figures) in run.kinds.iter().map(|(name, figures)| (name.as_str(), figures)).chain([total]) {
            let times =
                [figures.mean_ms, figures.p50_ms, figures.p95_ms, figures.p99_ms, figures.p999_ms, figures.max_ms];
            let names = [&run.revision, &run.server, &run.operation].map(|name| escape(name));
            let counts = [run.threads.to_string(), escape(kind), figures.operations.to_string()];
            let cells = names.into_iter().chain(counts).chain([format!("{:.0}", figures.per_second)]);
            let cells = cells.chain(times.iter().map(|time| format!("{time:.2}")));
            let cells = cells.chain([figures.errors.to_string(), figures.retries.to_string()]);
            let row: String = cells.map(|cell| format!("<td>{cell}</td>")).collect();
            let _ = writeln!(text, "<tr>{row}</tr>");
        }
    }
    text.push_str("</table>\n");
}

/// An SVG of these lines; the library escapes their names.
fn plot(lines: &[Line], x_label: &str, y_label: &str) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let far = |of: fn(&(f64, f64)) -> f64| {
            lines.iter().flat_map(|line| &line.points).map(of).fold(0.0, f64::max).max(1e-3)
        };
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d(0.0..far(|point| point.0), 0.0..far(|point| point.1) * 1.05)?;
        chart.configure_mesh().x_desc(x_label).y_desc(y_label).light_line_style(TRANSPARENT).draw()?;
        for (number, line) in lines.iter().enumerate() {
            let color = Palette99::pick(number).to_rgba();
            chart
                .draw_series(LineSeries::new(line.points.iter().copied(), color.stroke_width(2)))?
                .label(&line.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
        }
        chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
        area.present()?;
    }
    Ok(svg)
}
