//! Bodies with the results that Java gives, and bodies that are refused.

mod wasm;

use types::literal;

use super::*;

const BUDGET: Budget = Budget { steps: 1_000_000, bytes: 1 << 22 };

fn ty(text: &str) -> CqlType {
    types::cql_name::parse(text, &|_| None).expect("a type of a test")
}

/// Compiles a body for `name type, …` and a result type.
fn function(arguments: &str, returns: &str, body: &str) -> Result<Function, CompileError> {
    let arguments = arguments
        .split(';')
        .filter_map(|argument| argument.trim().split_once(' '))
        .map(|(name, of)| (name.to_owned(), ty(of)))
        .collect();
    let signature = Signature { arguments, returns: ty(returns), called_on_null: true };
    compile(&signature, body, &[])
}

/// A value written as JSON where that is needed.
fn value_of(ty: &CqlType, text: &str) -> Vec<u8> {
    match text.starts_with(['[', '{']) {
        true => {
            types::json::from_json(ty, &types::json::parse(text).expect("JSON of a test")).expect("a value of a test")
        }
        false => literal::parse_text(ty, text).expect("a value of a test"),
    }
}

/// The result of a call as text; an exception as `! text`.
fn outcome(arguments: &str, values: &[&str], returns: &str, body: &str) -> String {
    let function = match function(arguments, returns, body) {
        Ok(function) => function,
        Err(refusal) => return format!("? {refusal}"),
    };
    let Body::Java(java) = &function.0 else { unreachable!("a Java body") };
    let types: Vec<CqlType> = java.program.arguments.iter().map(|(_, ty)| ty.clone()).collect();
    let bytes: Vec<Option<Vec<u8>>> =
        values.iter().zip(&types).map(|(value, ty)| (*value != "null").then(|| value_of(ty, value))).collect();
    let given: Vec<Option<&[u8]>> = bytes.iter().map(Option::as_deref).collect();
    match function.call(&given, &BUDGET) {
        Ok(Some(bytes)) => literal::to_text(&ty(returns), &bytes),
        Ok(None) => "null".to_owned(),
        Err(CallError::Thrown(text)) => format!("! {text}"),
        Err(error) => format!("! {error:?}"),
    }
}

#[test]
fn bodies_have_the_results_of_java() {
    let cases = [
        ("a int; b int", &["7", "-2"][..], "int", "return a / b * 10 + a % b;", "-29"),
        ("a int; b int", &["7", "0"], "int", "return a / b;", "! java.lang.ArithmeticException: / by zero"),
        ("a int", &["2147483647"], "int", "return a + 1;", "-2147483648"),
        ("a int", &["null"], "int", "return a + 1;", "! java.lang.NullPointerException"),
        ("a int", &["null"], "int", "return a == null ? 5 : a;", "5"),
        ("a int", &["33"], "int", "return 1 << a;", "2"),
        ("a bigint", &["-1"], "bigint", "return a >>> 60;", "15"),
        ("a int", &["-17"], "int", "return a >> 2;", "-5"),
        ("a double", &["3.9e10"], "int", "return (int) (double) a;", "2147483647"),
        ("a int", &["300"], "tinyint", "return (byte) (int) a;", "44"),
        (
            "a int",
            &["5"],
            "text",
            "byte b = 10; b += a; b *= 20; return \"\" + b + 'x' + 1.0 + null + 1.5f + (char) 65;",
            "'44x1.0null1.5A'",
        ),
        (
            "a text",
            &["hello"],
            "text",
            "StringBuilder s = new StringBuilder(); for (char c : a.toCharArray()) s.append((char) (c + 1)).append('-'); return s.reverse().toString();",
            "'-p-m-m-f-i'",
        ),
        (
            "a list<int>",
            &["[3, 1, 2]"],
            "int",
            "int sum = 0; for (int x : a) { if (x == 2) continue; sum += x; } return sum;",
            "4",
        ),
        (
            "a list<int>",
            &["[3, 1, 2]"],
            "list<int>",
            "List<Integer> l = new ArrayList<>(a); Collections.sort(l); l.remove(Integer.valueOf(2)); l.remove(0); l.add(9); return l;",
            "[3, 9]",
        ),
        ("a text", &["a,b,,c,,"], "int", "return a.split(\",\").length;", "4"),
        (
            "a map<text, int>",
            &["{\"a\": 1, \"b\": 2}"],
            "map<text, int>",
            "Map<String, Integer> m = new HashMap<String, Integer>(a); m.put(\"c\", m.get(\"a\") + m.get(\"b\")); return m;",
            "{'a': 1, 'b': 2, 'c': 3}",
        ),
        (
            "a map<text, int>",
            &["{\"a\": 1, \"b\": 2}"],
            "int",
            "int s = 0; for (Map.Entry<String, Integer> e : a.entrySet()) s += e.getValue(); return s;",
            "3",
        ),
        (
            "a int",
            &["3"],
            "text",
            "switch (a) { case 1: return \"one\"; case 3: { String s = \"th\"; s += \"ree\"; return s; } default: return \"many\"; }",
            "'three'",
        ),
        (
            "a text",
            &["b"],
            "int",
            "int r = 0; switch (a) { case \"a\": r += 1; case \"b\": r += 2; case \"c\": r += 4; break; default: r = 9; } return r;",
            "6",
        ),
        ("a int", &["5"], "int", "int f = 1; while (true) { f *= a--; if (a <= 1) break; } return f;", "120"),
        (
            "a int",
            &["0"],
            "text",
            "try { return \"\" + 1 / a; } catch (ArithmeticException e) { return e.getMessage(); } finally { a = 1; }",
            "'/ by zero'",
        ),
        (
            "a int",
            &["4"],
            "int",
            "outer: for (int i = 0; ; i++) { for (int j = 0; j < 10; j++) { if (i * j == a * 6) return i * 100 + j; if (j > i) continue outer; } }",
            "604",
        ),
        (
            "a decimal",
            &["10.5"],
            "decimal",
            "return a.multiply(new java.math.BigDecimal(\"2.00\")).setScale(1, java.math.RoundingMode.HALF_UP);",
            "21.0",
        ),
        (
            "a varint",
            &["12345678901234567890"],
            "varint",
            "return a.pow(2).mod(java.math.BigInteger.valueOf(97));",
            "9",
        ),
        ("a int", &["4"], "double", "return Math.sqrt(a);", "2.0"),
        (
            "a int",
            &["4"],
            "int",
            "int[] x = new int[a]; for (int i = 0; i < x.length; i++) x[i] = i * i; x[1]++; x[2] += 10; return x[0] + x[1] + x[2]-- + x[3] + x[2];",
            "38",
        ),
        (
            "a int",
            &["4"],
            "int",
            "int[] x = {1, 2}; return x[a];",
            "! java.lang.ArrayIndexOutOfBoundsException: Index 4 out of bounds for length 2",
        ),
        (
            "a list<int>",
            &["[3, 1, 2]"],
            "int",
            "Map<Integer, Integer> m = new TreeMap<>(); a.forEach(x -> m.merge(x % 2, x, (p, q) -> p + q)); return m.get(1) * 10 + m.get(0);",
            "42",
        ),
        (
            "a list<text>",
            &["[\"bb\", \"a\", \"ccc\"]"],
            "text",
            "List<String> l = new ArrayList<>(a); l.sort(Comparator.comparing(s -> -s.length())); return String.join(\"|\", l);",
            "'ccc|bb|a'",
        ),
        (
            "a int",
            &["1"],
            "text",
            "throw new IllegalStateException(\"bad \" + a);",
            "! java.lang.IllegalStateException: bad 1",
        ),
        ("a int", &["1"], "int", "while (true) { }", "! Steps"),
        ("a int", &["1"], "text", "String s = \"x\"; while (true) s += s;", "! Bytes"),
        ("a tuple<int, text>", &["[1, \"x\"]"], "text", "return a.getString(1) + a.getInt(0);", "'x1'"),
        (
            "a int",
            &["7"],
            "tuple<int, text>",
            "TupleValue t = udfContext.newReturnTupleValue(); t.setInt(0, a); t.setString(1, \"y\"); return t;",
            "(7, 'y')",
        ),
        (
            "a int",
            &["7"],
            "boolean",
            "Object o = a; return o instanceof Integer && !(o instanceof Number && o.equals(8));",
            "true",
        ),
        ("a timestamp", &["1970-01-01T00:00:01Z"], "bigint", "return a.getTime();", "1000"),
        (
            "a int",
            &["7"],
            "int",
            "final int k = 3; java.util.function.Function<Integer, Integer> f = x -> x * k; return f.apply(a);",
            "21",
        ),
        ("a text", &["Zoë"], "int", "return a.hashCode() + a.length();", "90169"),
        (
            "a int",
            &["7"],
            "text",
            "long l = 1L << 40; float f = 1.1f; char c = 'a'; c++; return l + \" \" + f * 2 + \" \" + c + (c + 1) + 07 + 0x1F + 0b11 + 1_000;",
            "'1099511627776 2.2 b9973131000'",
        ),
        (
            "a list<text>",
            &["[\"bb\", \"a\"]"],
            "text",
            "List<String> l = new ArrayList<>(a); while (true) { l.sort(Comparator.comparing(String::length)); break; } return l.get(0);",
            "'a'",
        ),
        (
            "a int",
            &["8"],
            "int",
            "ByteBuffer b = ByteBuffer.allocate(a); b.position(2); b.mark(); b.position(5); b.reset(); return b.position();",
            "2",
        ),
        ("a int", &["1"], "int", "return new java.math.BigDecimal(\"1E-70000\").toPlainString().length();", "70002"),
        // a mark beyond the limit is none
        (
            "a int",
            &["8"],
            "int",
            "ByteBuffer b = ByteBuffer.allocate(a); b.position(8); b.mark(); b.limit(4); b.reset(); return b.remaining();",
            "! java.nio.InvalidMarkException",
        ),
    ];
    for (arguments, values, returns, body, expected) in cases {
        assert_eq!(outcome(arguments, values, returns, body), expected, "{body}");
    }
}

#[test]
fn bodies_outside_of_the_subset_are_refused_with_their_line() {
    let cases = [
        ("return a;;;\n}", 2, "expression is expected"),
        ("\nreturn System.currentTimeMillis();", 2, "System cannot be resolved"),
        ("int x = 1;\nint x = 2;\nreturn x;", 2, "Duplicate local variable x"),
        ("if (a > 1)\n  return 1;", 2, "must return a result"),
        ("return \"x\";", 1, "cannot convert from String to Integer"),
        ("return 1L;", 1, "cannot convert from long to Integer"),
        ("return 1;\nreturn 2;", 2, "Unreachable code"),
        ("int i = 0;\nRunnable r = null;\nreturn i;", 2, "Runnable cannot be resolved"),
        ("Integer b = a; return a == b ? 1 : 0;", 1, "use equals"),
        ("int n = 0; java.util.function.Supplier<Integer> s = () -> n; n = 2; return s.get();", 1, "effectively final"),
        ("throw new Exception(\"x\");", 1, "Unhandled exception type Exception"),
        ("new Object() { public int x() { return 1; } }; return 1;", 1, "Anonymous classes"),
        ("Thread.sleep(1); return 1;", 1, "Thread cannot be resolved"),
        ("byte b = 200; return 1;", 1, "cannot convert from int to byte"),
        ("return a.foo();", 1, "The method foo() of the type Integer is undefined"),
        ("boolean b = 1; return 1;", 1, "cannot convert from int to boolean"),
        ("break; return 1;", 1, "break cannot be used"),
    ];
    for (body, line, text) in cases {
        match function("a int", "int", body) {
            Ok(_) => panic!("compiled: {body}"),
            Err(refusal) => {
                assert!(refusal.text.contains(text), "{body}: {refusal}");
                assert_eq!(refusal.line, line, "{body}: {refusal}");
            }
        }
    }
    let deep = format!("return {}1{};", "(".repeat(5000), ")".repeat(5000));
    assert!(function("a int", "int", &deep).is_err());
    let long = format!("return 1{};", " + 1".repeat(5000));
    assert!(function("a int", "int", &long).is_err());
}

/// Bodies that `testdata/draw.py` drew, with the results of a Java machine.
#[test]
fn drawn_bodies_have_the_results_of_java() {
    /// Exceptions whose messages differ between versions of Java: their classes are compared.
    const FREE_MESSAGES: [&str; 3] = [
        "! java.lang.NullPointerException",
        "! java.lang.ClassCastException",
        "! java.lang.StringIndexOutOfBoundsException",
    ];
    let arguments = "a int; b bigint; d double; s text; l list<int>";
    let values = ["17", "-5000000000", "2.5", "Hello, World", "[3, 1, 2]"];
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in include_str!("../testdata/drawn.txt").lines() {
        let (body, json) = line.rsplit_once('\t').expect("a body and its result");
        let expected: String = serde_json::from_str(json).expect("a result as JSON");
        // the list of the generator is one of Arrays.asList
        let expected = expected.replace("ArrayIndexOutOfBounds", "IndexOutOfBounds");
        let found = outcome(arguments, &values, "text", body);
        let found = match found.strip_prefix('\'').and_then(|found| found.strip_suffix('\'')) {
            Some(text) => text.replace("''", "'"),
            None => found,
        };
        let free = FREE_MESSAGES.iter().any(|class| expected.starts_with(class) && found.starts_with(class));
        if !free && expected != found {
            wrong.push(format!("{body}\n  java {expected}\n  ours {found}"));
        }
        count += 1;
    }
    assert!(count > 1000, "{count} bodies");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Damaged bodies are refused or run to an end, and never panic.
#[test]
fn damaged_bodies_do_no_harm() {
    let words = [
        "(", ")", "{", "}", ";", "<", ">", "->", "::", "\"", "'", "\\", "new ", "int ", "[", "]", "?", ":", ".",
        "var x = ",
    ];
    let mut state = 1u64;
    let mut draw = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    for line in include_str!("../testdata/drawn.txt").lines() {
        let (body, _) = line.rsplit_once('\t').expect("a body and its result");
        let mut chars: Vec<char> = body.chars().collect();
        for _ in 0..1 + draw(3) {
            let at = draw(chars.len());
            match draw(3) {
                0 => drop(chars.remove(at)),
                1 => chars.truncate(at + 1),
                _ => drop(chars.splice(at..at, words[draw(words.len())].chars())),
            }
            if chars.is_empty() {
                chars.push(';');
            }
        }
        let damaged: String = chars.into_iter().collect();
        outcome("a int; b bigint; d double; s text; l list<int>", &["1", "2", "3.0", "x", "[1]"], "text", &damaged);
    }
}

/// Calls whose cost grows with a value take steps that grow with it: a loop of cheap steps ends
/// within its time.
#[test]
fn calls_on_large_values_take_more_steps() {
    let text = "a".repeat(1 << 18);
    let number = "7".repeat(30_000);
    let fraction = format!("0.{number}");
    let blob = format!("0x{}", "61".repeat(1 << 17));
    let cases: [(&str, [&str; 2], &[&str]); 4] = [
        (
            "text",
            [&text, &text],
            &[
                "a.indexOf('x')",
                "a.indexOf('x', 5)",
                "a.isBlank()",
                "a.startsWith(b)",
                "a.endsWith(b)",
                "a.compareTo(b)",
            ],
        ),
        (
            "varint",
            [&number, &number],
            &["a.equals(b)", "a.compareTo(b)", "a.hashCode()", "a.floatValue()", "a.signum()"],
        ),
        (
            "decimal",
            [&number, &fraction],
            &["a.precision()", "a.compareTo(b)", "a.hashCode()", "a.floatValue()", "a.scale()", "a.signum()"],
        ),
        ("blob", [&blob, &blob], &["a.equals(b)", "a.hashCode()"]),
    ];
    for (ty, values, calls) in cases {
        let arguments = format!("a {ty}; b {ty}");
        for call in calls {
            let body = |count: u32| format!("for (int i = 0; i < {count}; i++) {call}; return 1;");
            assert_eq!(outcome(&arguments, &values, "int", &body(2)), "1", "{ty} {call}");
            assert_eq!(outcome(&arguments, &values, "int", &body(10_000)), "! Steps", "{ty} {call}");
            let small = ["7", "8"].map(|digit| if ty == "blob" { "0x61" } else { digit });
            assert_eq!(outcome(&arguments, &small, "int", &body(10_000)), "1", "{ty} {call}");
        }
    }
}

/// Going from one character to the next takes the steps of what lies between them, not of the whole
/// text each time.
#[test]
fn a_text_is_walked_in_one_pass() {
    let text = "abc,".repeat(20_000);
    let body = "int n = 0; for (int at = a.indexOf(','); at >= 0; at = a.indexOf(',', at + 1)) n++; return n;";
    assert_eq!(outcome("a text", &[&text], "int", body), "20000");
}
