//! Letters, digits and signs by their ASCII relatives: the option `ascii` of storage-attached
//! indexes.
//!
//! Agrees with Lucene 9.7's `ASCIIFoldingFilter.foldToASCII`, which Cassandra 5.0 uses, in each
//! character of the basic plane; those beyond it have no relatives there. The libraries that do the
//! like (any_ascii, deunicode) spell out whole scripts, so that other rows would be found.

use std::sync::LazyLock;

/// The relatives by character, in the order of the characters.
static FOLDED: LazyLock<Vec<(char, &'static str)>> = LazyLock::new(|| {
    let of = |(relative, characters): &(&'static str, &'static str)| {
        let relative = *relative;
        characters.chars().map(move |character| (character, relative)).collect::<Vec<_>>()
    };
    let mut folded: Vec<_> = RELATIVES.iter().flat_map(of).collect();
    folded.sort_unstable();
    assert!(folded.windows(2).all(|pair| pair[0].0 < pair[1].0), "a character has one relative");
    folded
});

/// A text whose characters are replaced by their ASCII relatives, as far as they have any.
pub(super) fn to_ascii(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_ascii() {
            true => folded.push(character),
            false => match FOLDED.binary_search_by_key(&character, |(known, _)| *known) {
                Ok(at) => folded.push_str(FOLDED[at].1),
                Err(_) => folded.push(character),
            },
        }
    }
    folded
}

/// ASCII text, and the characters that it stands for.
const RELATIVES: &[(&str, &str)] = &[
    ("!", "！"),
    ("!!", "‼"),
    ("!?", "⁉"),
    ("\"", "«»“”„″‶❝❞❮❯＂"),
    ("#", "＃"),
    ("$", "＄"),
    ("%", "⁒％"),
    ("&", "＆"),
    ("'", "‘’‚‛′‵‹›❛❜＇"),
    ("(", "⁽₍❨❪（"),
    ("((", "⸨"),
    ("(1)", "⑴"),
    ("(10)", "⑽"),
    ("(11)", "⑾"),
    ("(12)", "⑿"),
    ("(13)", "⒀"),
    ("(14)", "⒁"),
    ("(15)", "⒂"),
    ("(16)", "⒃"),
    ("(17)", "⒄"),
    ("(18)", "⒅"),
    ("(19)", "⒆"),
    ("(2)", "⑵"),
    ("(20)", "⒇"),
    ("(3)", "⑶"),
    ("(4)", "⑷"),
    ("(5)", "⑸"),
    ("(6)", "⑹"),
    ("(7)", "⑺"),
    ("(8)", "⑻"),
    ("(9)", "⑼"),
    ("(a)", "⒜"),
    ("(b)", "⒝"),
    ("(c)", "⒞"),
    ("(d)", "⒟"),
    ("(e)", "⒠"),
    ("(f)", "⒡"),
    ("(g)", "⒢"),
    ("(h)", "⒣"),
    ("(i)", "⒤"),
    ("(j)", "⒥"),
    ("(k)", "⒦"),
    ("(l)", "⒧"),
    ("(m)", "⒨"),
    ("(n)", "⒩"),
    ("(o)", "⒪"),
    ("(p)", "⒫"),
    ("(q)", "⒬"),
    ("(r)", "⒭"),
    ("(s)", "⒮"),
    ("(t)", "⒯"),
    ("(u)", "⒰"),
    ("(v)", "⒱"),
    ("(w)", "⒲"),
    ("(x)", "⒳"),
    ("(y)", "⒴"),
    ("(z)", "⒵"),
    (")", "⁾₎❩❫）"),
    ("))", "⸩"),
    ("*", "⁎＊"),
    ("+", "⁺₊＋"),
    (",", "，"),
    ("-", "‐‑‒–—⁻₋－"),
    (".", "．"),
    ("/", "⁄／"),
    ("0", "⁰₀⓪⓿０"),
    ("1", "¹₁①⓵❶➀➊１"),
    ("1.", "⒈"),
    ("10", "⑩⓾❿➉➓"),
    ("10.", "⒑"),
    ("11", "⑪⓫"),
    ("11.", "⒒"),
    ("12", "⑫⓬"),
    ("12.", "⒓"),
    ("13", "⑬⓭"),
    ("13.", "⒔"),
    ("14", "⑭⓮"),
    ("14.", "⒕"),
    ("15", "⑮⓯"),
    ("15.", "⒖"),
    ("16", "⑯⓰"),
    ("16.", "⒗"),
    ("17", "⑰⓱"),
    ("17.", "⒘"),
    ("18", "⑱⓲"),
    ("18.", "⒙"),
    ("19", "⑲⓳"),
    ("19.", "⒚"),
    ("2", "²₂②⓶❷➁➋２"),
    ("2.", "⒉"),
    ("20", "⑳⓴"),
    ("20.", "⒛"),
    ("3", "³₃③⓷❸➂➌３"),
    ("3.", "⒊"),
    ("4", "⁴₄④⓸❹➃➍４"),
    ("4.", "⒋"),
    ("5", "⁵₅⑤⓹❺➄➎５"),
    ("5.", "⒌"),
    ("6", "⁶₆⑥⓺❻➅➏６"),
    ("6.", "⒍"),
    ("7", "⁷₇⑦⓻❼➆➐７"),
    ("7.", "⒎"),
    ("8", "⁸₈⑧⓼❽➇➑８"),
    ("8.", "⒏"),
    ("9", "⁹₉⑨⓽❾➈➒９"),
    ("9.", "⒐"),
    (":", "："),
    (";", "⁏；"),
    ("<", "❬❰＜"),
    ("=", "⁼₌＝"),
    (">", "❭❱＞"),
    ("?", "？"),
    ("?!", "⁈"),
    ("??", "⁇"),
    ("@", "＠"),
    ("A", "ÀÁÂÃÄÅĀĂĄƏǍǞǠǺȀȂȦȺᴀḀẠẢẤẦẨẪẬẮẰẲẴẶⒶＡ"),
    ("AA", "Ꜳ"),
    ("AE", "ÆǢǼᴁ"),
    ("AO", "Ꜵ"),
    ("AU", "Ꜷ"),
    ("AV", "ꜸꜺ"),
    ("AY", "Ꜽ"),
    ("B", "ƁƂɃʙᴃḂḄḆⒷＢ"),
    ("C", "ÇĆĈĊČƇȻʗᴄḈⒸＣ"),
    ("D", "ÐĎĐƉƊƋᴅᴆḊḌḎḐḒⒹꝹＤ"),
    ("DZ", "ǄǱ"),
    ("Dz", "ǅǲ"),
    ("E", "ÈÉÊËĒĔĖĘĚƎƐȄȆȨɆᴇḔḖḘḚḜẸẺẼẾỀỂỄỆⒺⱻＥ"),
    ("F", "ƑḞⒻꜰꝻꟻＦ"),
    ("G", "ĜĞĠĢƓǤǥǦǧǴɢʛḠⒼꝽꝾＧ"),
    ("H", "ĤĦȞʜḢḤḦḨḪⒽⱧⱵＨ"),
    ("HV", "Ƕ"),
    ("I", "ÌÍÎÏĨĪĬĮİƖƗǏȈȊɪᵻḬḮỈỊⒾꟾＩ"),
    ("IJ", "Ĳ"),
    ("J", "ĴɈᴊⒿＪ"),
    ("K", "ĶƘǨᴋḰḲḴⓀⱩꝀꝂꝄＫ"),
    ("L", "ĹĻĽĿŁȽʟᴌḶḸḺḼⓁⱠⱢꝆꝈꞀＬ"),
    ("LJ", "Ǉ"),
    ("LL", "Ỻ"),
    ("Lj", "ǈ"),
    ("M", "ƜᴍḾṀṂⓂⱮꟽꟿＭ"),
    ("N", "ÑŃŅŇŊƝǸȠɴᴎṄṆṈṊⓃＮ"),
    ("NJ", "Ǌ"),
    ("Nj", "ǋ"),
    ("O", "ÒÓÔÕÖØŌŎŐƆƟƠǑǪǬǾȌȎȪȬȮȰᴏᴐṌṎṐṒỌỎỐỒỔỖỘỚỜỞỠỢⓄꝊꝌＯ"),
    ("OE", "Œɶ"),
    ("OO", "Ꝏ"),
    ("OU", "Ȣᴕ"),
    ("P", "ƤᴘṔṖⓅⱣꝐꝒꝔＰ"),
    ("Q", "ɊⓆꝖꝘＱ"),
    ("R", "ŔŖŘȐȒɌʀʁᴙᴚṘṚṜṞⓇⱤꝚꞂＲ"),
    ("S", "ŚŜŞŠȘṠṢṤṦṨⓈꜱꞅＳ"),
    ("SS", "ẞ"),
    ("T", "ŢŤŦƬƮȚȾᴛṪṬṮṰⓉꞆＴ"),
    ("TH", "ÞꝦ"),
    ("TZ", "Ꜩ"),
    ("U", "ÙÚÛÜŨŪŬŮŰŲƯǓǕǗǙǛȔȖɄᴜᵾṲṴṶṸṺỤỦỨỪỬỮỰⓊＵ"),
    ("V", "ƲɅᴠṼṾỼⓋꝞꝨＶ"),
    ("VY", "Ꝡ"),
    ("W", "ŴǷᴡẀẂẄẆẈⓌⱲＷ"),
    ("X", "ẊẌⓍＸ"),
    ("Y", "ÝŶŸƳȲɎʏẎỲỴỶỸỾⓎＹ"),
    ("Z", "ŹŻŽƵȜȤᴢẐẒẔⓏⱫꝢＺ"),
    ("[", "⁅❲［"),
    ("\\", "＼"),
    ("]", "⁆❳］"),
    ("^", "‸＾"),
    ("_", "＿"),
    ("a", "àáâãäåāăąǎǟǡǻȁȃȧɐəɚᶏᶕḁẚạảấầẩẫậắằẳẵặₐₔⓐⱥⱯａ"),
    ("aa", "ꜳ"),
    ("ae", "æǣǽᴂ"),
    ("ao", "ꜵ"),
    ("au", "ꜷ"),
    ("av", "ꜹꜻ"),
    ("ay", "ꜽ"),
    ("b", "ƀƃɓᵬᶀḃḅḇⓑｂ"),
    ("c", "çćĉċčƈȼɕḉↄⓒꜾꜿｃ"),
    ("d", "ðďđƌȡɖɗᵭᶁᶑḋḍḏḑḓⓓꝺｄ"),
    ("db", "ȸ"),
    ("dz", "ǆǳʣʥ"),
    ("e", "èéêëēĕėęěǝȅȇȩɇɘɛɜɝɞʚᴈᶒᶓᶔḕḗḙḛḝẹẻẽếềểễệₑⓔⱸｅ"),
    ("f", "ƒᵮᶂḟẛⓕꝼｆ"),
    ("ff", "ﬀ"),
    ("ffi", "ﬃ"),
    ("ffl", "ﬄ"),
    ("fi", "ﬁ"),
    ("fl", "ﬂ"),
    ("g", "ĝğġģǵɠɡᵷᵹᶃḡⓖꝿｇ"),
    ("h", "ĥħȟɥɦʮʯḣḥḧḩḫẖⓗⱨⱶｈ"),
    ("hv", "ƕ"),
    ("i", "ìíîïĩīĭįıǐȉȋɨᴉᵢᵼᶖḭḯỉịⁱⓘｉ"),
    ("ij", "ĳ"),
    ("j", "ĵǰȷɉɟʄʝⓙⱼｊ"),
    ("k", "ķƙǩʞᶄḱḳḵⓚⱪꝁꝃꝅｋ"),
    ("l", "ĺļľŀłƚȴɫɬɭᶅḷḹḻḽⓛⱡꝇꝉꞁｌ"),
    ("lj", "ǉ"),
    ("ll", "ỻ"),
    ("ls", "ʪ"),
    ("lz", "ʫ"),
    ("m", "ɯɰɱᵯᶆḿṁṃⓜｍ"),
    ("n", "ñńņňŉŋƞǹȵɲɳᵰᶇṅṇṉṋⁿⓝｎ"),
    ("nj", "ǌ"),
    ("o", "òóôõöøōŏőơǒǫǭǿȍȏȫȭȯȱɔɵᴖᴗᶗṍṏṑṓọỏốồổỗộớờởỡợₒⓞⱺꝋꝍｏ"),
    ("oe", "œᴔ"),
    ("oo", "ꝏ"),
    ("ou", "ȣ"),
    ("p", "ƥᵱᵽᶈṕṗⓟꝑꝓꝕꟼｐ"),
    ("q", "ĸɋʠⓠꝗꝙｑ"),
    ("qp", "ȹ"),
    ("r", "ŕŗřȑȓɍɼɽɾɿᵣᵲᵳᶉṙṛṝṟⓡꝛꞃｒ"),
    ("s", "śŝşšſșȿʂᵴᶊṡṣṥṧṩẜẝⓢꞄｓ"),
    ("ss", "ß"),
    ("st", "ﬆ"),
    ("t", "ţťŧƫƭțȶʇʈᵵṫṭṯṱẗⓣⱦｔ"),
    ("tc", "ʨ"),
    ("th", "þᵺꝧ"),
    ("ts", "ʦ"),
    ("tz", "ꜩ"),
    ("u", "ùúûüũūŭůűųưǔǖǘǚǜȕȗʉᵤᶙṳṵṷṹṻụủứừửữựⓤｕ"),
    ("ue", "ᵫ"),
    ("v", "ʋʌᵥᶌṽṿⓥⱱⱴꝟｖ"),
    ("vy", "ꝡ"),
    ("w", "ŵƿʍẁẃẅẇẉẘⓦⱳｗ"),
    ("x", "ᶍẋẍₓⓧｘ"),
    ("y", "ýÿŷƴȳɏʎẏẙỳỵỷỹỿⓨｙ"),
    ("z", "źżžƶȝȥɀʐʑᵶᶎẑẓẕⓩⱬꝣｚ"),
    ("{", "❴｛"),
    ("}", "❵｝"),
    ("~", "⁓～"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters in hexadecimal and their relatives, as Lucene's own class gave them for every
    /// character of the basic plane.
    const RECORDED: &str = include_str!("../../testdata/ascii_folding.txt");

    #[test]
    fn every_character_has_the_relative_that_lucene_gives() {
        let mut recorded = RECORDED.lines().map(|line| {
            let (character, relative) = line.split_once(' ').expect("a character and its relative");
            (u32::from_str_radix(character, 16).expect("hexadecimal"), relative)
        });
        let mut next = recorded.next();
        for character in (0..=0x1_ffff).filter_map(char::from_u32) {
            let expected = match next {
                Some((known, relative)) if known == u32::from(character) => {
                    next = recorded.next();
                    relative.to_owned()
                }
                _ => character.to_string(),
            };
            assert_eq!(to_ascii(&character.to_string()), expected, "{:x}", u32::from(character));
        }
        assert_eq!(next, None, "all that was recorded was asked for");
    }
}
