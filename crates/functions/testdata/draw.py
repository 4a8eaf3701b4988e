#!/usr/bin/env python3
"""Draws bodies of functions, lets a Java compiler and machine run them, and writes bodies with results.

usage: draw.py COUNT SEED > drawn.txt    (needs javac and java in the path)

A line is BODY, a tab, RESULT. All bodies take a int, b bigint, d double, s text, l list<int> and give text;
an exception is `! ` and its toString.
"""
import json, pathlib, random, subprocess, sys, tempfile

count, seed = int(sys.argv[1]), int(sys.argv[2])
rnd = random.Random(seed)
INTS = ["0", "1", "2", "-1", "7", "31", "33", "-128", "255", "65535", "2147483647", "-2147483648", "0x7f", "1_000"]
LONGS = ["0L", "1L", "-1L", "63L", "4294967296L", "9223372036854775807L", "-9223372036854775808L", "10L"]
DOUBLES = ["0.0", "-0.0", "1.5", "-2.25", "1e10", "1e-5", "3.0e300", "Double.NaN", "0.1", "100.0", "12345.678"]
TEXTS = ['"x"', '"Hello"', '""', '"a,b,,c"', '"  pad "', '"Zo\\u00eb"', '"42"']


def pick(*options):
    return rnd.choice(options)


def expr(ty, depth):
    if depth <= 0 or rnd.random() < 0.12:
        return {"int": lambda: pick("a", "a", *INTS), "long": lambda: pick("b", "b", *LONGS),
                "double": lambda: pick("d", "d", *DOUBLES), "boolean": lambda: pick("true", "false", "a > 3"),
                "String": lambda: pick("s", "s", *TEXTS)}[ty]()
    e = lambda of: expr(of, depth - 1)
    num = lambda: e(pick("int", "long", "double"))
    if ty == "int":
        return pick(
            lambda: f"({e('int')} {pick('+', '-', '*', '/', '%', '&', '|', '^', '<<', '>>', '>>>')} {e('int')})",
            lambda: f"({e('int')} {pick('<<', '>>', '>>>')} {e('long')})",
            lambda: f"(int) ({e(pick('long', 'double'))})", lambda: f"(-{e('int')})".replace("--", "- -"),
            lambda: f"(~{e('int')})", lambda: f"({e('boolean')} ? {e('int')} : {e('int')})",
            lambda: f"Math.{pick('max', 'min')}({e('int')}, {e('int')})", lambda: f"Math.abs({e('int')})",
            lambda: f"({e('String')}).length()", lambda: f"({e('String')}).indexOf({e('String')})",
            lambda: f"({e('String')}).hashCode()", lambda: f"({e('String')}).compareTo({e('String')})",
            lambda: f"(byte) ({e('int')})", lambda: f"(short) ({e('int')})", lambda: f"(char) ({e('int')}) + 0",
            lambda: f"Integer.parseInt({e('String')})", lambda: f"Integer.bitCount({e('int')})",
            lambda: f"Integer.compare({e('int')}, {e('int')})", lambda: f"Double.compare({e('double')}, {e('double')})",
            lambda: f"Long.hashCode({e('long')})", lambda: f"Double.hashCode({e('double')})",
            lambda: f"Math.floorMod({e('int')}, {e('int')})", lambda: f"Math.addExact({e('int')}, {e('int')})",
            lambda: f"l.get({e('int')})", lambda: f"({e('String')}).charAt({e('int')}) + 1")()
    if ty == "long":
        return pick(
            lambda: f"({e('long')} {pick('+', '-', '*', '/', '%', '&', '|', '^')} {e(pick('int', 'long'))})",
            lambda: f"({e('long')} {pick('<<', '>>', '>>>')} {e(pick('int', 'long'))})",
            lambda: f"(long) ({e(pick('int', 'double'))})", lambda: f"(-{e('long')})".replace("--", "- -"),
            lambda: f"Math.round({e('double')})", lambda: f"Math.max({e('long')}, {e('long')})",
            lambda: f"Long.reverse({e('long')})", lambda: f"Math.multiplyExact({e('long')}, {e('long')})",
            lambda: f"java.math.BigInteger.valueOf({e('long')}).multiply(java.math.BigInteger.valueOf({e('long')})).longValue()",
            lambda: f"Double.doubleToLongBits({e('double')})", lambda: f"({e('boolean')} ? {e('long')} : {e('int')})")()
    if ty == "double":
        return pick(
            lambda: f"({e('double')} {pick('+', '-', '*', '/', '%')} {num()})", lambda: f"Math.{pick('floor', 'ceil', 'rint', 'abs')}({e('double')})",
            lambda: f"Math.{pick('max', 'min')}({e('double')}, {e('double')})", lambda: f"(double) ({e(pick('int', 'long'))})",
            lambda: f"Math.sqrt({e('double')})", lambda: f"(double) (float) ({e('double')})", lambda: f"Math.signum({e('double')})",
            lambda: f"new java.math.BigDecimal({e('int')}).doubleValue()", lambda: f"({e('boolean')} ? {e('double')} : {e('int')})")()
    if ty == "boolean":
        return pick(
            lambda: f"({num()} {pick('<', '<=', '>', '>=', '==', '!=')} {num()})", lambda: f"({e('boolean')} {pick('&&', '||', '&', '|', '^', '==')} {e('boolean')})",
            lambda: f"(!{e('boolean')})", lambda: f"({e('String')}).{pick('equals', 'contains', 'startsWith', 'endsWith', 'equalsIgnoreCase')}({e('String')})",
            lambda: f"({e('String')}).isEmpty()", lambda: f"l.contains({e('int')})", lambda: f"Double.isNaN({e('double')})")()
    return pick(
        lambda: f"({e('String')} + {e(pick('int', 'long', 'double', 'boolean', 'String'))})", lambda: f"String.valueOf({num()})",
        lambda: f"({e('String')}).{pick('toUpperCase', 'toLowerCase', 'trim')}()", lambda: f"({e('String')}).substring({e('int')})",
        lambda: f"({e('String')}).replace({e('String')}, {e('String')})", lambda: f"Integer.toHexString({e('int')})",
        lambda: f"Long.toString({e('long')}, {pick('2', '16', '36', '10')})", lambda: f"new StringBuilder({e('String')}).append({num()}).reverse().toString()",
        lambda: f"new java.math.BigDecimal({e('int')}).divide(new java.math.BigDecimal({e('int')}), {pick('0', '3', '10')}, java.math.RoundingMode.{pick('UP', 'DOWN', 'HALF_UP', 'HALF_EVEN', 'FLOOR', 'CEILING', 'HALF_DOWN')}).toString()",
        lambda: f"java.math.BigDecimal.valueOf({e('int')}, {pick('0', '2', '-3', '12')}).toString()",
        lambda: f"java.math.BigInteger.valueOf({e('long')}).pow({pick('2', '3', '5')}).toString()",
        lambda: f"String.valueOf(Arrays.asList({e('int')}, {e('String')}, {e('boolean')}))",
        lambda: f"String.join({e('String')}, {e('String')}, {e('String')})", lambda: f"({e('boolean')} ? {e('String')} : {e('String')})")()


def body():
    form = rnd.random()
    if form < 0.6:
        return f"return \"\" + ({expr(pick('int', 'long', 'double', 'boolean', 'String'), 4)});"
    if form < 0.7:
        op = pick("+=", "-=", "*=", "/=", "%=", "<<=", ">>=", ">>>=", "&=", "|=", "^=")
        ty = pick("byte", "short", "char", "int", "long")
        return f"{ty} x = ({ty}) ({expr('int', 2)}); x {op} {expr('int', 2)}; x++; return \"\" + (x + 0) + x--;"
    if form < 0.8:
        return f"int n = 0; for (int i = 0; i < 20; i++) {{ if (i % 3 == {expr('int', 1)} % 3) continue; n += i * ({expr('int', 2)}); if (n > 100000) break; }} return \"\" + n;"
    if form < 0.9:
        keys = pick("i * 7919 % 101", '"k" + i', "(long) i << 33", "i * 0.5", "(char) (i * 13 + 65)")
        of = pick("HashMap", "LinkedHashMap", "TreeMap")
        return f"Map<Object, Object> m = new {of}<>(); for (int i = 0; i < {rnd.randrange(1, 40)}; i++) {{ m.put({keys}, i); if (i % 5 == 4) m.remove({keys.replace('i', '(i - 2)') if 'k' not in keys else 'i - 2'}); }} return m.toString() + m.hashCode();"
    return f"try {{ int q = {expr('int', 3)}; return \"q\" + q; }} catch (ArithmeticException e) {{ return \"A\" + e.getMessage(); }} catch (RuntimeException e) {{ return \"R\"; }}"


bodies = [body() for _ in range(count)]
with tempfile.TemporaryDirectory() as where:
    where = pathlib.Path(where)

    def compile_all(chosen):
        methods = [f"static String f{at}(Integer a, Long b, Double d, String s, List<Integer> l) throws Exception {{ {text} }}" for at, text in chosen]
        calls = [f"run({at}, () -> f{at}(17, -5000000000L, 2.5, \"Hello, World\", Arrays.asList(3, 1, 2)));" for at, _ in chosen]
        chunks = [calls[i:i + 200] for i in range(0, len(calls), 200)]
        parts = [f"static void p{n}() {{ {' '.join(chunk)} }}" for n, chunk in enumerate(chunks)]
        source = "import java.util.*; public class Drawn { interface F { String get() throws Exception; }\n" + "\n".join(methods) + "\n" + \
            "static void run(int at, F f) { String r; try { r = f.get(); } catch (Throwable t) { r = \"! \" + t; } StringBuilder o = new StringBuilder(); for (char c : r.toCharArray()) o.append(String.format(\"%04x\", (int) c)); System.out.println(at + \" \" + o); }\n" + \
            "\n".join(parts) + "\npublic static void main(String[] x) { " + " ".join(f"p{n}();" for n in range(len(chunks))) + " } }\n"
        (where / "Drawn.java").write_text(source)
        done = subprocess.run(["javac", "-nowarn", "-Xmaxerrs", "100000", "--release", "11", "-d", where, where / "Drawn.java"], capture_output=True, text=True)
        return done

    chosen = list(enumerate(bodies))
    for _ in range(4):
        done = compile_all(chosen)
        bad = {int(line.split(":")[1]) - 2 for line in done.stderr.splitlines() if ".java:" in line and "error:" in line}
        if not bad:
            break
        chosen = [item for at, item in enumerate(chosen) if at not in bad]
    out = subprocess.run(["java", "-cp", where, "Drawn"], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        at, _, units = line.partition(" ")
        result = "".join(chr(int(units[i:i + 4], 16)) for i in range(0, len(units), 4))
        print(bodies[int(at)] + "\t" + json.dumps(result))
