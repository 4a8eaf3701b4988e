//! A page with plots: rate and latencies over time, latency by percentile. One file, nothing loaded from elsewhere.

use std::fmt::Write as _;

use plotters::prelude::*;

use super::{Finished, percentiles};
use crate::Result;
use crate::measure::Figures;
use crate::settings::output::Graph;

const SIZE: (u32, u32) = (960, 320);

/// A line of a plot.
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

/// The page for these runs.
pub fn page(graph: &Graph, runs: &[Finished]) -> Result<String> {
    let each_run = |of: &dyn Fn(&Figures) -> f64| -> Vec<Line> {
        let points = |run: &Finished| run.series.points.iter().map(|point| (point.at, of(point))).collect();
        runs.iter().map(|run| Line { name: name(run), points: points(run) }).collect()
    };
    let curve = |run: &Finished| {
        percentiles::of(&run.tally).iter().map(|point| (point.one_of.log10(), point.response_ms)).collect()
    };
    let curves: Vec<Line> = runs.iter().map(|run| Line { name: name(run), points: curve(run) }).collect();
    let plots = [
        ("Operations a second", plot(&each_run(&|point| point.per_second), "seconds", "op/s")?),
        ("Median latency", plot(&each_run(&|point| point.p50_ms), "seconds", "ms")?),
        ("99th percentile", plot(&each_run(&|point| point.p99_ms), "seconds", "ms")?),
        ("Longest", plot(&each_run(&|point| point.max_ms), "seconds", "ms")?),
        ("Latency that one operation of 10^x exceeds", plot(&curves, "x", "ms")?),
    ];
    let mut text = String::new();
    let (title, revision) = (escape(&graph.title), escape(&graph.revision));
    let _ = write!(
        text,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>body{{font-family:sans-serif;max-width:1000px;margin:auto}}\
         table{{border-collapse:collapse}}td,th{{padding:.2em .6em;text-align:right;border-bottom:1px solid #ccc}}</style></head>\n<body><h1>{title}</h1><p>{revision}</p>\n"
    );
    table(&mut text, runs);
    for (heading, svg) in plots {
        let _ = writeln!(text, "<h2>{heading}</h2>\n{svg}");
    }
    text.push_str("</body></html>\n");
    Ok(text)
}

fn name(run: &Finished) -> String {
    format!("{} threads", run.threads)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn table(text: &mut String, runs: &[Finished]) {
    text.push_str("<table><tr><th>threads<th>kind<th>operations<th>op/s<th>mean ms<th>median<th>95th<th>99th<th>99.9th<th>max<th>errors</tr>\n");
    for run in runs {
        let total = ("total", &run.total);
        for (kind, figures) in run.kinds.iter().map(|(name, _, figures)| (name.as_str(), figures)).chain([total]) {
            let _ = writeln!(
                text,
                "<tr><td>{}<td>{}<td>{}<td>{:.0}<td>{:.2}<td>{:.2}<td>{:.2}<td>{:.2}<td>{:.2}<td>{:.2}<td>{}</tr>",
                run.threads,
                escape(kind),
                figures.operations,
                figures.per_second,
                figures.mean_ms,
                figures.p50_ms,
                figures.p95_ms,
                figures.p99_ms,
                figures.p999_ms,
                figures.max_ms,
                figures.errors
            );
        }
    }
    text.push_str("</table>\n");
}

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
