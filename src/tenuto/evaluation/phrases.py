"""The words of generated sessions, in three languages: what people and models say, and what tools print.

`{a}` is a name that occurs once in a session, `{n}` and `{m}` are numbers, `{d}` a day, `{p}` a person, `{o}` what an
earlier sentence named. The sentences were written without a look at any list of words in the program.
"""

from __future__ import annotations

from typing import Literal

Language = Literal["en", "de", "ja"]
LANGUAGES: tuple[Language, ...] = ("en", "de", "ja")


def _split(*rows: str) -> tuple[str, ...]:
    return tuple(name for row in rows for name in row.split(", "))


ADJECTIVES = _split(
    "amber, brisk, calm, dusky, eager, faint, gentle, hollow, iron, jolly, keen, lunar, mellow, noble",
    "olive, plain, quiet, rapid, silver, tidy, upper, vivid, warm, young, zesty, bold, coarse, dense",
    "early, frosty",
)
NOUNS = _split(
    "anchor, basket, canal, depot, engine, ferry, garden, harbor, island, jacket, kettle, ladder, market",
    "needle, orchard, parcel, quarry, ribbon, saddle, tunnel, umbrella, valley, wagon, yard, zipper",
    "beacon, cellar, drawer, elbow, fender",
)
PEOPLE = _split(
    "Amina Adeyemi, Ruben Castellano, Mei Tanaka, Oskar Lindqvist, Priya Raghavan, Jonas Weidner",
    "Leila Haddad, Tomasz Wrona, Ingrid Solberg, Mateus Figueira, Yuki Hasegawa, Clara Obermeier",
    "Dmitri Volkonsky, Nadia Benali, Piet van Houten",
)
DAYS = _split(
    "3 February 2027, 14 March 2027, 9 April 2027, 27 May 2027, 18 June 2027, 5 July 2027, 22 August 2027",
    "1 September 2027, 12 October 2027, 30 November 2027, 16 December 2027, 8 January 2028",
)

RULES: dict[Language, tuple[str, ...]] = {
    "en": (
        "Please don't call {a}_service from a migration, it deadlocks.",
        "Amounts in {a} are kept in tenths of a cent everywhere.",
        "We leave the {a} folder alone until the audit is through.",
        "Tests around {a} run with the clock frozen at 08:15.",
        "Mail addresses have no place in the log lines of {a}.",
        "Whatever goes into {a} has to import on Python 3.11 as well.",
        "I want every query on {a} to name its columns.",
        "Keep {a} free of new dependencies.",
        "Commit messages for {a} start with the ticket number.",
        "Ask me before you touch the schema of {a}.",
        "For {a} we use British spelling in the texts.",
        "The {a} endpoint stays read only.",
    ),
    "de": (
        "Bitte ruf {a}_service nicht aus einer Migration auf, das verklemmt sich.",
        "Beträge in {a} liegen überall in Zehntelcent vor.",
        "Den Ordner {a} lassen wir in Ruhe, bis die Prüfung durch ist.",
        "Tests rund um {a} laufen mit angehaltener Uhr um 08:15.",
        "Mailadressen haben in den Logzeilen von {a} nichts verloren.",
        "Was in {a} landet, muss sich auch unter Python 3.11 importieren lassen.",
        "Ich möchte, dass jede Abfrage auf {a} ihre Spalten nennt.",
        "Halte {a} frei von neuen Abhängigkeiten.",
        "Commits zu {a} beginnen mit der Ticketnummer.",
        "Frag mich, bevor du am Schema von {a} etwas änderst.",
        "In {a} siezen wir die Kundschaft.",
        "Der Endpunkt {a} bleibt rein lesend.",
    ),
    "ja": (
        "マイグレーションから{a}_serviceを呼ばないでください。デッドロックします。",
        "{a}の金額はすべて0.1セント単位で持ちます。",
        "監査が終わるまで{a}フォルダには手を付けません。",
        "{a}まわりのテストは時計を08:15に固定して実行します。",
        "{a}のログにメールアドレスを出してはいけません。",
        "{a}に入れるものはPython 3.11でもインポートできる必要があります。",
        "{a}へのクエリは必ず列名を書いてください。",
        "{a}に新しい依存を増やさないでください。",
        "{a}のコミットはチケット番号で始めます。",
        "{a}のスキーマを変える前に私に聞いてください。",
        "{a}の文面は敬体でお願いします。",
        "{a}エンドポイントは読み取り専用のままにします。",
    ),
}
NUMBERS: dict[Language, tuple[str, ...]] = {
    "en": ("A batch for {a} holds {n} rows.", "{a} gives up after {n} milliseconds.", "We pay for {n} seats of {a}."),
    "de": (
        "Ein Stapel für {a} hat {n} Zeilen.",
        "{a} gibt nach {n} Millisekunden auf.",
        "Wir zahlen für {n} Plätze bei {a}.",
    ),
    "ja": ("{a}のバッチは{n}行です。", "{a}は{n}ミリ秒で諦めます。", "{a}は{n}席分を契約しています。"),
}
DATES: dict[Language, tuple[str, ...]] = {
    "en": ("{a} goes live on {d}.", "The contract for {a} runs out on {d}.", "On {d} we switch {a} off."),
    "de": ("{a} geht am {d} in Betrieb.", "Der Vertrag für {a} läuft am {d} aus.", "Am {d} schalten wir {a} ab."),
    "ja": ("{a}は{d}に公開します。", "{a}の契約は{d}に切れます。", "{d}に{a}を止めます。"),
}
NAMES: dict[Language, tuple[str, ...]] = {
    "en": ("{p} signs off everything about {a}.", "Questions on {a} go to {p}.", "{p} owns {a} on the client's side."),
    "de": ("{p} zeichnet alles zu {a} ab.", "Fragen zu {a} gehen an {p}.", "Beim Kunden ist {p} für {a} zuständig."),
    "ja": ("{a}の承認は{p}さんです。", "{a}の質問は{p}さんへ。", "先方の{a}担当は{p}さんです。"),
}
FIRSTS: dict[Language, str] = {
    "en": "Set up the {a} proxy on port {n}.",
    "de": "Richte den Proxy für {a} auf Port {n} ein.",
    "ja": "{a}のプロキシをポート{n}で立ててください。",
}
CLAIMS: dict[Language, tuple[str, ...]] = {
    "en": ("The cache of {a} lives for {n} seconds.", "Put the exports of {a} into bucket-{n}."),
    "de": ("Der Cache von {a} hält {n} Sekunden.", "Leg die Exporte von {a} nach bucket-{n}."),
    "ja": ("{a}のキャッシュは{n}秒です。", "{a}の出力はbucket-{n}に置いてください。"),
}
CORRECTIONS: dict[Language, tuple[str, ...]] = {
    "en": (
        "I was wrong about {o}: take {n}.",
        "Correction for {o}, it has to be {n}.",
        "Sorry, {o} needs {n}, not what I said.",
        "About {o} again: make that {n}.",
    ),
    "de": (
        "Bei {o} lag ich falsch: nimm {n}.",
        "Korrektur zu {o}, es muss {n} sein.",
        "Entschuldige, {o} braucht {n} und nicht das, was ich sagte.",
        "Noch einmal zu {o}: mach {n} daraus.",
    ),
    "ja": (
        "{o}の件、間違えました。{n}にしてください。",
        "{o}の訂正です。正しくは{n}です。",
        "すみません、{o}は{n}でお願いします。",
        "{o}についてですが、やはり{n}で。",
    ),
}
KEYS: dict[Language, tuple[str, ...]] = {
    "en": (
        "The import of {a} must be done before {n} seconds are over.",
        "Nobody may write to {a} while replica {n} is catching up.",
        "For {a} only version {n}.2 of the driver is supported.",
        "The deadline for {a} is {d}.",
        "Use queue {n} for {a} instead of the shared one.",
        "{a} never retries more than {n} times.",
        "It is port {n} on which {a} listens in production.",
        "Each file of {a} has at most {n} lines.",
    ),
    "de": (
        "Der Import von {a} muss nach {n} Sekunden durch sein.",
        "Solange Replik {n} aufholt, darf niemand in {a} schreiben.",
        "Für {a} wird nur Version {n}.2 des Treibers unterstützt.",
        "Die Frist für {a} ist der {d}.",
        "Nimm für {a} die Warteschlange {n} statt der gemeinsamen.",
        "{a} versucht es nie öfter als {n} Mal.",
        "In Produktion lauscht {a} auf Port {n}.",
        "Jede Datei von {a} hat höchstens {n} Zeilen.",
    ),
    "ja": (
        "{a}の取り込みは{n}秒以内に終わらなければなりません。",
        "レプリカ{n}が追いつくまで{a}に書き込んではいけません。",
        "{a}ではドライバのバージョン{n}.2だけを使います。",
        "{a}の締め切りは{d}です。",
        "{a}には共有ではなくキュー{n}を使ってください。",
        "{a}の再試行は{n}回を超えてはいけません。",
        "本番の{a}はポート{n}で待ち受けます。",
        "{a}の各ファイルは最大{n}行です。",
    ),
}
PROSE: dict[Language, tuple[str, ...]] = {
    "en": (
        "The meeting began with a walk through the board and nobody had much to add.",
        "Somebody asked whether the dashboards were still looked at, and a few people were.",
        "There was some talk about the weather on the coast and the trains that week.",
        "The group compared notes on the last release and found it had gone smoothly.",
        "We looked at a handful of charts, most of them flat, and moved along.",
        "The customer told the story of how the old system had come about.",
        "After the break the room was warmer and the discussion a little slower.",
        "Two people shared their screens and clicked through the usual pages.",
    ),
    "de": (
        "Die Runde begann mit einem Blick auf die Tafel, und es gab wenig zu ergänzen.",
        "Jemand fragte, ob die Übersichten noch angesehen werden, und einige tun das.",
        "Es ging eine Weile um das Wetter an der Küste und um die Züge in der Woche.",
        "Die Gruppe verglich ihre Notizen zur letzten Auslieferung und war zufrieden.",
        "Wir sahen eine Handvoll Kurven an, die meisten flach, und gingen weiter.",
        "Der Kunde erzählte, wie das alte System einmal entstanden war.",
        "Nach der Pause war der Raum wärmer und das Gespräch etwas langsamer.",
        "Zwei teilten ihren Bildschirm und klickten durch die üblichen Seiten.",
    ),
    "ja": (
        "会議はボードの確認から始まり、特に意見はありませんでした。",
        "ダッシュボードを見ている人がいるかという話になり、何人か手を挙げました。",
        "海沿いの天気と今週の電車の話がしばらく続きました。",
        "前回のリリースについて感想を述べ合い、おおむね順調でした。",
        "いくつかのグラフを眺めましたが、ほとんど横ばいでした。",
        "お客様から古いシステムの成り立ちを伺いました。",
        "休憩の後は部屋が暖かくなり、話は少しゆっくりになりました。",
        "二人が画面を共有して、いつものページを順に開きました。",
    ),
}
DECISIONS: dict[Language, tuple[str, ...]] = {
    "en": (
        "I'm going with SQLite for {a}, a server would be one more thing to run.",
        "{a} gets a table of its own rather than a column, that keeps the index small.",
        "We settled on UTC inside {a}, and local time at the edges.",
        "I chose polling for {a} because the webhook drops events.",
        "I've decided against caching {a}: it changes with every call.",
        "Let's keep {a} synchronous, the callers are scripts.",
    ),
    "de": (
        "Für {a} nehme ich SQLite, ein Server wäre noch etwas, das laufen muss.",
        "{a} bekommt eine eigene Tabelle statt einer Spalte, so bleibt der Index klein.",
        "Wir haben uns in {a} auf UTC geeinigt, Ortszeit nur am Rand.",
        "Ich habe mich bei {a} für Polling entschieden, weil der Webhook Ereignisse verliert.",
        "Gegen einen Cache für {a} spricht, dass es sich mit jedem Aufruf ändert; ich lasse ihn weg.",
        "{a} bleibt synchron, die Aufrufer sind Skripte.",
    ),
    "ja": (
        "{a}にはSQLiteを使うことにしました。サーバーを増やしたくないからです。",
        "{a}は列ではなく専用テーブルにします。索引が小さく済みます。",
        "{a}の内部はUTCで統一すると決めました。",
        "{a}はポーリングを選びました。Webhookは取りこぼします。",
        "{a}のキャッシュは見送ります。呼ぶたびに変わるためです。",
        "{a}は同期のままにします。呼び出し側はスクリプトです。",
    ),
}
REVERSALS: dict[Language, tuple[str, ...]] = {
    "en": (
        "That was the wrong call for {o}; I'm moving it to {a} after all.",
        "I take back what I said on {o} and use {a} instead.",
        "Changed my mind about {o}: {a} does it better.",
    ),
    "de": (
        "Bei {o} war das die falsche Wahl; ich ziehe nun doch nach {a} um.",
        "Was ich zu {o} sagte, nehme ich zurück und verwende {a}.",
        "Zu {o} habe ich es mir anders überlegt: {a} kann das besser.",
    ),
    "ja": (
        "{o}の判断は誤りでした。やはり{a}に移します。",
        "{o}についての方針を取り下げ、代わりに{a}を使います。",
        "{o}は考え直しました。{a}の方が適しています。",
    ),
}
PROMISES: dict[Language, tuple[str, ...]] = {
    "en": (
        "I'll add the missing index on {a} once the copy is through.",
        "The docs of {a} still have to be written, I'll do that last.",
        "Next I'll take the flag for {a} out.",
        "I haven't run the slow tests of {a} yet and will do so before the release.",
    ),
    "de": (
        "Den fehlenden Index auf {a} lege ich an, sobald die Kopie durch ist.",
        "Die Doku zu {a} steht noch aus, die mache ich zuletzt.",
        "Als Nächstes nehme ich den Schalter für {a} heraus.",
        "Die langsamen Tests von {a} habe ich noch nicht laufen lassen und hole das vor der Auslieferung nach.",
    ),
    "ja": (
        "コピーが終わり次第、{a}に足りない索引を追加します。",
        "{a}のドキュメントはまだ書いていないので、最後に書きます。",
        "次に{a}のフラグを外します。",
        "{a}の遅いテストは未実行です。リリース前に実行します。",
    ),
}
TALK: dict[Language, tuple[str, ...]] = {
    "en": ("That is in place now.", "Had a look, this works as described.", "Done, nothing else was affected."),
    "de": ("Das ist jetzt drin.", "Angesehen, es läuft wie beschrieben.", "Fertig, sonst ist nichts betroffen."),
    "ja": ("反映しました。", "確認しました。説明どおり動きます。", "完了しました。他への影響はありません。"),
}
WORK: dict[Language, tuple[str, ...]] = {
    "en": ("Look through the runs of {a}.", "See what the checks say about {a}.", "Go on with {a}."),
    "de": ("Sieh die Läufe von {a} durch.", "Schau, was die Prüfungen zu {a} sagen.", "Mach mit {a} weiter."),
    "ja": ("{a}の実行結果を見てください。", "{a}のチェック結果を確認してください。", "{a}を続けてください。"),
}
PASTE: dict[Language, str] = {
    "en": "Here are my notes, take them into account.",
    "de": "Hier sind meine Notizen, berücksichtige sie.",
    "ja": "メモを貼ります。考慮してください。",
}
GO_ON: dict[Language, str] = {"en": "And now?", "de": "Und jetzt?", "ja": "次は？"}
TODOS: dict[Language, tuple[str, ...]] = {
    "en": ("Move {a} to the new layout", "Write the release note for {a}", "Check the totals of {a}"),
    "de": ("{a} auf das neue Layout umziehen", "Notiz zur Auslieferung von {a} schreiben", "Summen von {a} prüfen"),
    "ja": ("{a}を新しい構成へ移す", "{a}のリリースノートを書く", "{a}の合計を確認する"),
}

LOG_LINES = (
    "upload {x} rejected by the storage node, will not be tried again",
    "client reported {x} while the pool was draining",
    "backend {x} stopped answering, taken out of rotation",
    "trace {x} exceeded its budget in the render stage",
)
ERRORS = (
    "AssertionError: {a} expected {n} rows, got {m}",
    "error[E0382]: use of moved value: `{a}` at src/{a}.rs:{n}:{m}",
    'ERROR: duplicate key value violates unique constraint "{a}_{n}_idx"',
    "panic: {a}: index out of range [{n}] with length {m}",
    "npm ERR! {a}@{n}.{m}.0 build: `tsc -p .` failed",
    "TimeoutError: {a} did not become ready within {n} ms",
)
