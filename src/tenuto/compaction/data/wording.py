"""Which sentences must survive a compaction, told by their words: rules, corrections, decisions, promises. Pure.

No list of words is complete. What is found here is kept *first*; nothing is thrown away because it is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

MAX_SENTENCE = 320
"""Characters; a longer line (minified code, a log without breaks) is looked at in pieces of this length."""
MAX_SCANNED = 50_000
"""Characters at each end of a text that are looked through; more than that is no longer what somebody says."""


class Vocabulary:
    """Words of scripts with spaces, and phrases: what has a blank or a mark in it, or is of a script without spaces."""

    def __init__(self, *lines: str) -> None:
        terms = [term for line in lines for term in line.split("|")]
        self._words = frozenset(term for term in terms if term.isalpha() and not _WIDE_LETTER.match(term))
        self._phrases = tuple(term for term in terms if term not in self._words)

    def is_in(self, sentence: str) -> bool:
        """Say whether one of the terms stands in a sentence."""
        small = sentence.lower().replace("’", "'")
        return not self._words.isdisjoint(words_of(small)) or any(phrase in small for phrase in self._phrases)


_WIDE_LETTER = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@lru_cache(maxsize=8_192)
def words_of(small: str) -> frozenset[str]:
    """Return the words of a sentence in small letters."""
    return frozenset(_ANY_WORD.findall(small))


_ANY_WORD = re.compile(r"[^\W\d_]+")
_RULE = Vocabulary(
    "must|mustn't|never|always|only|do not|don't|not allowed|forbidden|require|required|requires|mandatory|deadline",
    "no longer|under no circumstances|at most|at least|make sure|has to|have to|need to|needs to|rule|instead|except",
    "nobody|no one|cannot|can't|may not|niemand|höchstens|mindestens|personne|nadie|ninguém|nessuno|никто|nikt",
    "最多|至少|いけません|なければな|最大|以内|締め切り",
    "muss|müssen|musst|nie|niemals|immer|nur|darf|dürfen|statt|stattdessen|sondern|frist|verboten|keinesfalls",
    "unbedingt|doit|doivent|jamais|toujours|seulement|uniquement|au lieu|interdit|il faut|délai",
    "debe|deben|nunca|siempre|sólo|solo|solamente|en lugar|en vez|prohibido|plazo|hay que",
    "deve|devem|sempre|somente|apenas|em vez|prazo|proibido|mai|soltanto|invece|scadenza|vietato",
    "moet|moeten|nooit|altijd|alleen|in plaats|verboden|должен|должна|должны|никогда|всегда|только|вместо|нельзя",
    "срок|обязательно|必须|不要|不得|不能|禁止|永远|总是|只能|只用|仅|而不是|改为|改成|务必|一律|截止",
    "必ず|絶対|常に|だけ|のみ|ではなく|代わりに|しないで|期限|반드시|절대|항상|대신|말고|금지|마세요|기한",
    # What is said of a rule without a word for it: out of bounds, whatever happens, not later than, not more than.
    "out of the question|off limits|off-limits|hands off|stay away|stays away|stay out|untouched|as it is|as they are",
    "whatever happens|no matter what|at all costs|by no means|on no account|nowhere else|nothing else|no other",
    "at the latest|no later than|not later than|no more than|no less than|cut-off|cutoff|freeze|frozen|capped|ceiling",
    "upper bound|lower bound|strictly|exclusively|supposed to|is to be|are to be|not to be|end of life|refuse",
    "auf keinen fall|in keinem fall|unter keinen umständen|kommt nicht in frage|tabu|finger weg|unangetastet",
    "spätestens|ausschließlich|lediglich|egal was|maximal|minimal|pflicht|zwingend|untersagt|so wie es ist",
    "hors de question|en aucun cas|sous aucun prétexte|quoi qu'il arrive|au plus tard|au maximum|au minimum|au plus",
    "au moins|obligatoire|impératif|impérativement|strictement|exclusivement|proscrit|exclu|nulle part|ne pas|ne plus",
    "date limite|tel quel|telle quelle|tels quels|ne touche|ne touchez|pas question|doivent rester|doit rester",
    "pase lo que pase|ni hablar|de ninguna manera|bajo ningún concepto|en ningún caso|a más tardar|como máximo",
    "como mínimo|al menos|a lo sumo|obligatorio|imprescindible|exclusivamente|estrictamente|tal cual|intacto|sin tocar",
    "no se toca|no toques|fecha límite|tiene que|tienen que|hace falta|ningún|ninguna|jamás|únicamente",
    "in nessun caso|per nessun motivo|al massimo|al minimo|almeno|entro|obbligatorio|esclusivamente|divieto",
    "non toccare|em hipótese alguma|de jeito nenhum|no máximo|no mínimo|pelo menos|obrigatório",
    "exclusivamente|não mexa|não toque",
    "in geen geval|onder geen beding|uiterlijk|maximaal|minimaal|hooguit|minstens|verplicht|uitsluitend|blijf af",
    "ни в коем случае|ни при каких|не трогать|не трогай|не позднее|не более|не менее|исключительно|строго|запрещено",
    "绝不|决不|切勿|切记|严禁|一定|无论如何|别动|不动|不准|不许|最晚|最迟|以前|之前|不超过|不低于|至多|上限|下限|仅限|唯一",
    "要求|应当|必需|需要|除非|以外|厳禁|だめ|ダメ|触らない|触るな|そのまま|必須|までに|以上|以下|未満|上限|下限|最低|限り|限定",
    "しか|以外|決して|何があっても|べき|なくていい|不要|凍結|절대로|안 됩니다|안 된다|하지 마|까지|이하",
    "이상|최대|최소|필수|오직|그대로",
    # Further languages: must, never, always, only, instead, forbidden, at most, at least, at the latest.
    "måste|aldrig|alltid|endast|istället|förbjudet|högst|minst|senast|får inte|får ej|tidsfrist",
    "skal|skulle|alltid|altid|aldri|kun|i stedet|forbudt|højst|høyst|mindst|senest|må ikke|frist",
    "täytyy|pitää|ei saa|ei koskaan|aina|vain|ainoastaan|sijaan|kielletty|enintään|vähintään|viimeistään|määräaika",
    "musí|nesmí|nikdy|vždy|pouze|jenom|místo toho|zakázáno|nejvýše|nejméně|nejpozději|termín|namiesto|zakázané|najviac",
    "musi|muszą|nigdy|zawsze|tylko|wyłącznie|zamiast|nie wolno|zabronione|co najmniej|co najwyżej|najpóźniej",
    "повинен|повинна|повинні|мусить|ніколи|завжди|тільки|лише|замість|заборонено|не можна|щонайбільше|принаймні",
    "trebuie|niciodată|întotdeauna|mereu|numai|doar|în loc|interzis|cel mult|cel puțin|cel târziu|termen",
    "kell|soha|mindig|csak|kizárólag|helyett|tilos|legfeljebb|legalább|legkésőbb|határidő|szabad",
    "πρέπει|ποτέ|πάντα|μόνο|αντί|απαγορεύεται|το πολύ|τουλάχιστον|το αργότερο|προθεσμία",
    "gerekir|gerekiyor|zorunda|zorunlu|asla|hiçbir zaman|her zaman|daima|sadece|yalnızca|yerine|yasak|en fazla",
    "en geç|meli|malı|memeli|mamalı|yasaktır",
    "يجب|لا يجوز|لا تقم|أبدا|أبدًا|دائما|دائمًا|فقط|بدلا|بدلاً|ممنوع|على الأكثر|على الأقل|الموعد النهائي|لازم",
    "باید|نباید|هرگز|هیچ‌وقت|هیچ وقت|همیشه|فقط|به جای|ممنوع|حداکثر|حداقل|مهلت",
    "חייב|חייבת|חייבים|אסור|אף פעם|לעולם|תמיד|במקום|לכל היותר|לפחות|לכל המאוחר",
    "कभी|हमेशा|केवल|सिर्फ|चाहिए|ज़रूरी|जरूरी|के बजाय|की बजाय|मना है|अधिकतम|कम से कम|मत करो|मत करना|समय सीमा",
    "অবশ্যই|কখনো|কখনও|সবসময়|শুধু|কেবল|পরিবর্তে|নিষেধ|সর্বোচ্চ|কমপক্ষে",
    "phải|không bao giờ|không được|luôn|chỉ|thay vì|cấm|nhiều nhất|tối đa|ít nhất|tối thiểu|hạn chót|chậm nhất",
    "ต้อง|ห้าม|ไม่เคย|อย่า|เสมอ|เท่านั้น|แทนที่|แทน|มากที่สุด|อย่างน้อย|อย่างช้า|กำหนดส่ง",
    "harus|wajib|jangan|tidak boleh|selalu|hanya|alih-alih|dilarang|paling banyak|paling sedikit|paling lambat|tenggat",
    "lazima|kamwe|daima|siku zote|pekee|badala ya|marufuku|hairuhusiwi|angalau|isizidi",
)
_QUANTITY = re.compile(
    r"\d\s?(?:%|‰|°|ms\b|s\b|sec\b|min\b|h\b|[kmgt]i?b\b|fps\b|px\b|eur\b|usd\b|am\b|pm\b|uhr\b|[€$£¥]|ミリ秒|毫秒|秒|分|時|点|日|月|年)"
    r"|[€$£¥]\s?\d|\d{1,2}:\d{2}|\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\bv\d|\b\d+\.\d+"
    r"|\b(?:jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-zäöéû]*\.?,? (?:the )?\d"
    r"|\d(?:st|nd|rd|th|er|º|\.)?,? (?:of |de |d')?(?:jan|feb|fév|m[aä]r|a[pvb]r|ma[iy]|ju[inl]|aug|août|ago|sep|o[ck]t"
    r"|nov|d[eéi][czs]|ene|gen)"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun|diens|donners|frei|sams|sonn)(?:day|tag)\b|\bmittwoch\b"
    r"|\b(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo)\b"
    r"|[月火水木金土日]曜|(?:周|星期|礼拜)[一二三四五六日天]|[월화수목금토일]요일"
    r"|(?-i:\b[A-Z]\w+ \d)",
    re.IGNORECASE,
)
"""A date, a time, a number with its unit, or a version."""
WEAK = 1
"""The weight of a sentence with nothing but a weak word."""
_WEAK = Vocabulary(
    "not|no|should|prefer|avoid|before|after|until|limit|version|port|budget|important|keep|use|please|unless",
    "nicht|kein|keine|keinen|soll|sollen|sollte|bitte|bis|pas|devrait|avant|non|versión|puerto|não|versão|porta|niet",
    "geen|не|до|порт|версия|端口|版本|请|用|ポート|バージョン|ください|포트|버전",
)
_CORRECTION = Vocabulary(
    "correction|corrected|actually|scratch that|forget that|forget what|forget about|ignore that|ignore what|ignore my",
    "i meant|instead|no longer|change of plan|rather than|, not |wrong|never mind|nevermind|replaces|anymore|any more",
    "on second thought|korrektur|stattdessen|doch nicht|vergiss|eigentlich|sondern|nicht mehr|falsch",
    "finalement|en fait|oublie|oubliez|plutôt|corrección|en realidad|olvida|correção|na verdade|esqueça",
    "correzione|in realtà|dimentica|correctie|toch niet|eigenlijk|поправка|исправление|на самом деле|забудь|вместо",
    "更正|纠正|改为|改成|不对|其实|而不是|訂正|間違い|誤り|やっぱり|ではなく|정정|아니라|대신",
    "rättelse|i stället|istället|inte längre|rettelse|i stedet|ikke længere|ikke lenger|korjaus|oprava|už ne|zamiast",
    "poprawka|jednak nie|виправлення|замість|насправді|corectare|de fapt|în loc|javítás|helyett|mégsem|διόρθωση|αντί",
    "düzeltme|aslında|yerine|artık değil|تصحيح|بدلا|بدلاً|لم يعد|اصلاح|به جای|תיקון|במקום|बदलाव|के बजाय|दरअसल",
    "sửa lại|thay vì|không còn|แก้ไข|แทนที่|ralat|koreksi|alih-alih|sebenarnya|masahihisho|badala ya",
)
_DECISION = Vocabulary(
    "decided|decision|i chose|i choose|i picked|settled on|go with|went with|going with|opted|chosen|agreed|instead",
    "rather than|reverted|switched|replaced|no longer|dropped|rejected|turned down|on second thought",
    "entschieden|entscheidung|stattdessen|verworfen|gewählt|décidé|décision|choisi|decidido|decisión|elegido",
    "deciso|scelto|besloten|gekozen|решено|решил|решила|решение|выбран|выбрали",
    "决定|改用|选择了|放弃|決定|採用|代わりに|결정|선택",
)
_PROMISE = Vocabulary(
    "i'll|i will|we'll|we will|todo|to do|not yet|still need|still has|still have|still open|still missing|remains",
    "next step|next up|up next|do next|comes next|next, i|next, we|next i |next we |next is |next: | next.",
    "remaining|later|follow-up|follow up|pending|promise|promised|afterwards|will need|will have to",
    "werde|noch nicht|später|danach|als nächstes|plus tard|pas encore|ensuite|je vais|todavía|después|luego|voy a",
    "ainda não|depois|vou|non ancora|dopo|nog niet|позже|ещё не|затем",
    "稍后|之后|还没|尚未|待办|下一步|我会|後で|まだ|次に|나중에|아직|다음",
)
_ERROR_LINE = re.compile(
    r"\b(?:[A-Z]\w*(?:Error|Exception|Failure)|error|failed|failure|fatal|panic|traceback|exception|cannot|undefined"
    r"|not found|no such|does(?: not|n't) exist|unable to|not recogni[sz]ed|rejected|denied|refused"
    r"|timed? ?out|segmentation fault|(?-i:E[A-Z]{4,}|[A-Z]{2,}_\d{3,})|assert(?:ion)?)\b",
    re.IGNORECASE,
)
_OPAQUE = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_TURN = re.compile(r"[a-z](?=[A-Z0-9+/])|[A-Z](?=[0-9+/])|[0-9](?=[A-Za-z+/])")
_ANNOUNCEMENT = re.compile(
    r"(?:\W*(?:now|ok|okay|good|great|perfect|first|next|then|so|and|wait|actually|alright|all right)\b[,.!:]?\s*)*"
    r"(?:let me(?! (?:keep|leave|use|stick|stay|go with))"
    r"|let(?:'s| us) (?:check|look|see|verify|find|read|run|test|try)"
    r"|i'll now|i'll first|i will now|lass mich|lassen sie mich|laissez-moi|laisse-moi|déjame|déjeme|deixe-me|deixa-me"
    r"|lasciami|fammi|laat me)\b"
    r"|(?:好的?[,，。!！]?|首先|接下来|那么|现在|下面)*(?:让我|我来|我先)"
)
_LINE = re.compile(r"[^\n]+")
_STOP = re.compile(r"(?<!\b[a-z]\.[a-zA-Z])(?<!\b(?:cf|vs|ca))(?<!\bbzw)[.!?]+(?=\s)|[。！？]+")
_NAME = re.compile(r"\d[\d.:]*\d|\d|\w*(?:[_/]\w+|\w\.\w+)+|`[^`\n]+`")
_WORD = re.compile(r"[^\W\d_]{4,}")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
_COMMON = frozenset(
    {
        "this",
        "that",
        "with",
        "from",
        "have",
        "will",
        "must",
        "never",
        "always",
        "only",
        "should",
        "into",
        "your",
        "what",
    }
    | {"when", "then", "than", "they", "there", "about", "please", "because", "instead", "after", "before", "which"}
    | {"would", "could", "make", "does", "done", "been", "were", "correction", "decided", "decision", "used", "using"}
    | {"need", "needs", "later", "next", "still", "also"}
)


class Sentence(NamedTuple):
    """A sentence or line of a text, as offsets in characters."""

    start: int
    end: int


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a text in order, without blank ones; of a very long text those near both ends."""
    if len(text) <= 2 * MAX_SCANNED:
        yield from _sentences_between(text, 0, len(text))
        return
    yield from _sentences_between(text, 0, MAX_SCANNED)
    yield from _sentences_between(text, len(text) - MAX_SCANNED, len(text))


def _sentences_between(text: str, start: int, end: int) -> Iterator[Sentence]:
    for line in _LINE.finditer(text, start, end):
        begin = line.start()
        for stop in (*(found.end() for found in _STOP.finditer(text, begin, line.end())), line.end()):
            for first in range(begin, stop, MAX_SENTENCE):
                piece = text[first : min(stop, first + MAX_SENTENCE)]
                said = piece.strip()
                if said:
                    at = first + piece.index(said[0])
                    yield Sentence(at, at + len(said))
            begin = stop


@lru_cache(maxsize=4_096)
def weigh_rule(sentence: str) -> int:
    """Return how much a sentence of the user sounds like a rule, a limit or a correction; 0: not at all.

    One that has an exact name, a date or a quantity weighs something whatever its words are: no list of words is
    complete, and what is exact cannot be guessed. A word that many sentences have ("not", "port") is worth the least,
    `WEAK`: such a sentence of a long text stays where there is room.
    """
    weight = 4 * _CORRECTION.is_in(sentence) + 3 * _RULE.is_in(sentence)
    exact = (_NAME.search(sentence) is not None) + (_QUANTITY.search(sentence) is not None)
    return 2 * (weight + exact) + WEAK * _WEAK.is_in(sentence)


def is_correction(sentence: str) -> bool:
    """Say whether a sentence of the user takes something back."""
    return _CORRECTION.is_in(sentence)


def is_decision(sentence: str) -> bool:
    """Say whether a sentence of an answer tells what was decided, or what was decided otherwise."""
    return _DECISION.is_in(sentence)


def is_promise(sentence: str) -> bool:
    """Say whether a sentence of an answer names what is still to be done."""
    return _PROMISE.is_in(sentence)


def is_error_line(line: str) -> bool:
    """Say whether a line of a result tells of a failure."""
    return bool(_ERROR_LINE.search(line))


def is_announcement(sentence: str) -> bool:
    """Say whether a sentence of an answer begins as one that only tells what is done at once ("Let me look at it").

    "Let's keep it" is a decision.
    """
    return _ANNOUNCEMENT.match(sentence.lower().replace("’", "'")) is not None


def is_opaque(text: str) -> bool:
    """Say whether a text has a long run of letters and digits that nobody reads: a key, a signature, encoded bytes.

    Where letters and digits of every kind take turns that often there are no words; a hash in small letters is a name.
    """
    runs = (found[0] for found in _OPAQUE.finditer(text))
    return any(4 * len(_TURN.findall(run)) > len(run) and _is_mixed(run) for run in runs)


def _is_mixed(run: str) -> bool:
    return run != run.lower() and run != run.upper() and any(map(str.isdigit, run))


class Topic(NamedTuple):
    """What a sentence is about: its exact names and numbers, and its longer words in small letters."""

    names: frozenset[str]
    words: frozenset[str]


@lru_cache(maxsize=4_096)
def topic_of(sentence: str) -> Topic:
    """Return what a sentence is about."""
    small = sentence.lower()
    words = {word for word in _WORD.findall(small) if word not in _COMMON} | set(_WIDE.findall(small))
    return Topic(frozenset(name.strip("`") for name in _NAME.findall(small)), frozenset(words))


def is_content(word: str) -> bool:
    """Say whether a word, in small letters, says what a sentence is about: it has four letters and is not common."""
    return len(word) > 3 and word not in _COMMON


def is_same_topic(one: Topic, other: Topic) -> bool:
    """Say whether two sentences speak of the same thing, so that the later one takes the place of the earlier one."""
    shared = len(one.words & other.words)
    fewest = min(len(one.words), len(other.words))
    if fewest == 0:
        return bool(one.names & other.names)
    if one.names and other.names and not one.names & other.names:
        return shared >= 3 and shared * 5 >= fewest * 4  # other numbers for the same words
    return shared >= 2 and shared * 5 >= fewest * 3
