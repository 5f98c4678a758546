"""Russian prose from our own grammar: regular nouns declined by rule, past-tense verbs by gender."""
# ruff: noqa: E501, SIM905 - word lists and templates read better unbroken.

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from corpus.spin import Spinner

if TYPE_CHECKING:
    import random

# Regular nouns only; (m) and (f) mark the gender of those in a soft sign.
HEROES = "лиса волк медведь(m) заяц-! кот собака мышь(f) сова ворона белка рыбак-! художник учитель(m) строитель(m) мастер музыкант доктор солдат пастух царевна принцесса дракон робот великан девочка мальчик-! старик старушка королева король(m) волшебник рыцарь(m) мельник моряк кузнец-! портной-! охотник странник черепаха лягушка корова коза лошадь(f) лебедь(m) воробей-! слон тигр обезьяна пингвин ученик капитан инженер".split()
HEROES = [h for h in HEROES if not h.endswith("-!")] + ["мальчик", "рыбак"]
PLACES = "лес город деревня замок остров долина гора гавань(f) сад пустыня рынок башня мельница река луг пещера станция библиотека ферма мост болото поле пляж школа кухня музей озеро дорога площадь(f) дворец-! комната улица дом порт храм парк завод театр гостиница".split()
PLACES = [p for p in PLACES if not p.endswith("-!")]
THINGS = "ключ карта лампа письмо монета кольцо книга коробка колокол зеркало верёвка перо камень-! флейта чашка лодка пальто-! корзина зерно фотография скрипка свеча компас ожерелье-! одеяло-! фонарь(m) колесо ракушка шкатулка нож шар сундук-! плащ цветок-! бумага тетрадь(f) телескоп механизм посуда картина яблоко".split()
THINGS = [t for t in THINGS if not t.endswith("-!")]
TOPICS = "мост двигатель(m) вулкан компьютер батарея радуга рынок телескоп сердце холодильник велосипед вакцина самолёт магнит банк язык облако память(f) лифт река звезда принтер камера пианино-! землетрясение термометр сеть(f) радио-! ледник микроскоп спутник колесо мельница плотина лампа робот поезд вирус школа программа музыка дружба время-! свобода работа наука природа энергия торговля".split()
TOPICS = [t for t in TOPICS if not t.endswith("-!")]
ADJ = "маленьк больш-ой стар молод-ой добр груст-н умн хитр одинок смел тих странн весёл уставш-ий красив древн-ий бел чёрн серебрян золот-ой деревянн пуст-ой далёк тёмн яр-к холодн тёпл мудр забавн таинственн".split()
ADJ = [a for a in ADJ if "-" not in a]
VERBS = "увидел встретил услышал построил спрятал подарил потерял купил открыл закрыл заметил поднял полюбил искал узнал вспомнил забыл поймал разбудил починил нарисовал попросил бросил оставил".split()
MOVES = "побежал отправился вернулся прилетел уехал спустился заглянул пробрался добрался поспешил".split()
MOODS = "обрадовался испугался удивился загрустил рассердился задумался засмеялся успокоился растерялся".split()
SAYS = "сказал спросил ответил прошептал крикнул подумал воскликнул".split()
HARD_K = "гкхжшщч"


def gender(noun: str) -> str:
    """m, f or n, from the mark or the ending."""
    if noun.endswith((")",)):
        return noun[-2]
    if noun.endswith(("а", "я")):
        return "f"
    return "n" if noun.endswith(("о", "е")) else "m"


def decline(noun: str) -> dict[str, str]:
    """The singular cases nom, gen, dat, acc (inanimate), anim (animate accusative), ins, pre."""
    g, word = gender(noun), noun.split("(")[0]
    stem, last = word[:-1], word[-1]
    before = stem[-1]
    if last == "а":
        i = "и" if before in HARD_K else "ы"
        o = "ей" if before in "жшщчц" else "ой"
        forms = (word, stem + i, stem + "е", stem + "у", stem + "у", stem + o, stem + "е")
    elif last == "я":
        e = "и" if before == "и" else "е"
        forms = (word, stem + "и", stem + e, stem + "ю", stem + "ю", stem + "ей", stem + e)
    elif last == "о":
        forms = (word, stem + "а", stem + "у", word, word, stem + "ом", stem + "е")
    elif last == "е":
        e = "и" if before == "и" else "е"
        a, u = ("а", "у") if before in "щцжш" else ("я", "ю")
        forms = (word, stem + a, stem + u, word, word, stem + "ем", stem + e)
    elif last == "ь" and g == "f":
        forms = (word, stem + "и", stem + "и", word, word, stem + "ью", stem + "и")
    elif last in "ьй":
        e = "и" if before == "и" else "е"
        forms = (word, stem + "я", stem + "ю", word, stem + "я", stem + "ем", stem + e)
    else:
        o = "ем" if last in "жшщчц" else "ом"
        forms = (word, word + "а", word + "у", word, word + "а", word + o, word + "е")
    return dict(zip(("nom", "gen", "dat", "acc", "anim", "ins", "pre"), forms, strict=True))


def adjective(stem: str, g: str, case: str) -> str:
    """A hard adjective's singular form."""
    soft = stem[-1] in "гкх"
    table = {
        "m": {
            "nom": "ий" if soft else "ый",
            "gen": "ого",
            "dat": "ому",
            "ins": "им" if soft else "ым",
            "pre": "ом",
        },
        "f": {
            "nom": "ая",
            "gen": "ой",
            "dat": "ой",
            "acc": "ую",
            "anim": "ую",
            "ins": "ой",
            "pre": "ой",
        },
        "n": {"nom": "ое", "gen": "ого", "dat": "ому", "ins": "им" if soft else "ым", "pre": "ом"},
    }
    same = {"acc": "nom", "anim": "gen" if g == "m" else "nom"}
    forms = table[g]
    return stem + (forms[case] if case in forms else forms[same[case]])


class Phrase:
    """A noun with an optional adjective, kept through a text."""

    def __init__(self, noun: str, adj: str = "") -> None:
        self.gender, self.forms, self.adj = gender(noun), decline(noun), adj

    def form(self, case: str) -> str:
        """With the adjective."""
        head = adjective(self.adj, self.gender, case) + " " if self.adj else ""
        return head + self.forms[case]


TOKEN = re.compile(r"\[(\w+?)(\d?)(?:\.(\w+))?\]")
OPENINGS = [
    "Жил{end} когда-то [h.adj] и жил{end} недалеко от [P.gen].",
    "Давным-давно в [P.place] жил{end} [h.adj].",
    "Однажды [h.adj] [move] {prep} [P.into].",
    "Каждое утро [h.adj] искал{end} [T.acc] возле [P.gen].",
    "Никто в [P.place] не знал, откуда появил{sya} [h.adj].",
    "Была ночь, когда [h.adj] [move] {prep} [P.into].",
    "Есть старая сказка о том, как [h.nom] [verb] [T.acc].",
    "[H.adj] всегда мечтал{end} увидеть [P.acc].",
]
EVENTS = [
    "{Вдруг|Однажды утром|Вечером|На следующий день|Через неделю|Ночью|На рассвете|Весной|Поздней осенью|Зимой|Через много лет} [h.nom] [verb] [T.acc].",
    "{Вдруг|Однажды|Вечером|Утром|Скоро} из [P.gen] вышел [M.nom].",
    "«{Куда ты идёшь|Кто здесь живёт|Почему ты молчишь|Где [T.nom]|Что ты ищешь}?» — [say] [h.nom].",
    "«{Помоги мне найти|Отдай мне|Я никогда не видел|Посмотри на|Возьми с собой|Береги} [T.acc]», — [say] [h.nom].",
    "[H.nom] [mood], потому что [T.nom] {пропало бесследно|было далеко|осталось дома|больше не нужно}.",
    "{Дождь|Ветер|Снег|Туман|Гром|Мороз|Свет луны} накрыл{} [P.acc], и стало {тихо|темно|холодно|светло|страшно|спокойно}.",
    "Возле [P.gen] {стоял|лежал|сидел|спал|пел} [M.nom].",
    "[H.nom] [move] {prep} [P.into], но там {никого не было|было пусто|было темно|шумел ветер|горел огонь}.",
    "Под [T.ins] {лежала записка|была дверь|спала кошка|блестела вода|нашлась тропа}.",
    "Вместе они {шли|ехали|плыли|бежали} до [P.gen] {целый день|всю ночь|три дня|очень долго}.",
    "[H.nom] долго думал{end} о [T.pre] и о [P.pre].",
    "За [P.ins] {начинался другой мир|слышалась песня|горел костёр|жили добрые люди|текла река}.",
    "Без [T.gen] нельзя было {войти|вернуться|уснуть|победить|согреться}.",
    "Тогда [h.nom] [verb] [T.acc] и [move] {prep} [P.into].",
    "[M.nom] показал{} дорогу {prep} [P.into] и исчез{}.",
    "Старый [M.nom] рассказал о [P.pre], где спрятан{} клад.",
    "Все в [P.place] {смеялись|плакали|молчали|удивлялись|спорили|радовались}, и только [h.nom] {ничего не слышал{end}|улыбал{sya}|смотрел{end} в окно}.",
    "[H.nom] держал{end} [T.acc] осторожно, {как чудо|словно живое существо|боясь упасть|не оглядываясь}.",
    "На [T.pre] было написано имя, которое знал{end} только [h.nom].",
    "{Наконец|Потом|Тем временем|И тогда|После этого} [h.nom] [verb] ещё [T.acc].",
]
ENDINGS = [
    "С тех пор [h.nom] больше не боял{sya} {темноты|дороги|одиночества|зимы|людей}.",
    "Так [h.nom] понял{end}, что {дом там, где ждут|дружба дороже золота|нельзя сдаваться|счастье рядом}.",
    "И в [P.place] снова стало {тихо|светло|весело|тепло}.",
    "А [T.nom] до сих пор хранится в [P.place].",
    "[H.nom] [move] домой и {спокойно уснул{end}|рассказал{end} всё друзьям|больше не уходил{end}}.",
]
FACTS = [
    "[X.nom] — это {сложная система|простая идея|особое устройство|часть нашей жизни|важное явление|цепочка малых шагов}.",
    "Сначала {энергия|сила|вода|тепло|свет|сигнал|воздух|давление} проходит через {стенку|провод|трубу|линзу|корпус|опору|поверхность}.",
    "Потом {часть|деталь|масса|волна|частица} {движется|меняется|нагревается|остывает|передаёт силу|останавливается}.",
    "Без [X.gen] {жизнь была бы труднее|мир был бы другим|люди тратили бы больше сил|многое стало бы невозможно}.",
    "{Учёные|Инженеры|Врачи|Дети|Мастера|Историки|Люди} {давно изучают|часто сравнивают|хорошо знают|по-разному понимают} [X.acc].",
    "Поэтому {вес|свет|шум|холод|огонь|поток} {распределяется равномерно|не мешает|становится полезным|теряет силу}.",
    "Главное в [X.pre] — {равновесие|точность|терпение|скорость|простота|надёжность|порядок}.",
    "Если {одна часть сломается|температура изменится|не хватит энергии|забыть об уходе}, {система остановится|другие части помогут|результат будет хуже}.",
    "{Раньше|Сто лет назад|В древности|Сегодня|В будущем} [X.nom] {выглядит иначе|помогает людям|служит долго|вызывает споры}.",
    "Например, {дома|в школе|в городе|на заводе|в больнице|в природе} мы {часто видим|используем|не замечаем} [X.acc].",
    "Рядом с [X.ins] {всегда есть риск|легко учиться|трудно скучать|нужна осторожность}.",
    "Малые изменения {температуры|скорости|давления|формы|времени} {дают большой результат|почти не видны|важны для работы}.",
    "{Внутри|Снаружи|На границе|В центре} {происходит самое важное|всё устроено просто|находится главный элемент|почти ничего нет}.",
    "Так {сила|информация|энергия|вода|мысль} {передаётся дальше|возвращается назад|не теряется|находит путь}.",
]
STORY_ASKS = [
    "{Напиши|Расскажи|Сочини|Придумай} {короткий рассказ|рассказ|сказку|историю|короткую сказку|короткую историю|добрую сказку} {о|про} [ask]{.|}",
    "{Можешь написать|Пожалуйста, напиши|Пожалуйста, расскажи|Расскажи мне} {сказку|рассказ|историю} про [anim]{.|?|}",
    "{Сказка|Рассказ|История} про [anim]",
    "{Хочу|Давай} {сказку|историю} про [anim] {и [T.acc]|из [P.gen]}.",
    "{Продолжи историю|Продолжи}: жил{} в [P.place] [h.nom].",
]
FACT_ASKS = [
    "{Объясни|Расскажи|Опиши}, {как работает|как устроен{}|что такое|зачем нужен{}} [X.nom]{.|}",
    "{Что такое|Зачем нам|Как работает|Почему важен{}} [X.nom]?",
    "{Объясни простыми словами|Расскажи кратко|Объясни ребёнку}, {что такое|как работает} [X.nom]{.|}",
    "{Расскажи|Напиши} {о|про} [X.about]{.|}",
    "{Напиши|Составь} {короткий текст|эссе|несколько предложений|абзац} {о|на тему:} [X.about2]{.|}",
    "{В чём смысл|Что ты думаешь|Почему люди спорят} {о [X.pre]|насчёт [X.gen]}?",
]
LETTERS = [
    "Спасибо за [T.acc] и за тёплые слова.",
    "Погода у нас {хорошая|плохая|холодная|тёплая}, и мы часто вспоминаем [P.acc].",
    "Давай встретимся возле [P.gen] в {понедельник|среду|пятницу|субботу} в {девять|десять|два|три|шесть}.",
    "Извини за долгое молчание, было много {работы|дел|забот}.",
    "Я нашёл твой подарок в [P.place], это [T.nom].",
    "Напиши мне, когда будет время, я жду ответа до {конца недели|вечера|лета}.",
    "Дети просят показать им [P.acc] и [T.acc].",
    "Работа идёт {хорошо|медленно|быстро}, но без [T.gen] трудно.",
]


class Russian:
    """Every method returns (prompt, answer, plan)."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.spin = rng, Spinner({}, rng)

    def fill(self, text: str, fixed: dict[str, Phrase]) -> str:
        """Choose the alternatives, then put declined words into the square slots."""
        hero = fixed.get("h", fixed.get("X"))
        end = {"m": "", "f": "а", "n": "о"}[hero.gender if hero else "m"]
        text = text.replace("{end}", end).replace("{sya}", "ся" if not end else f"{end[0]}сь")
        # The reflexive past of a masculine ends in -лся, of a feminine in -лась.
        text = text.replace("{}", "").replace("{prep}", "в")
        text = self.spin(text)
        text = TOKEN.sub(lambda m: self.slot(m[1], m[3], fixed, end), text)
        return text[0].upper() + text[1:]

    def slot(self, name: str, case: str | None, fixed: dict[str, Phrase], end: str) -> str:
        rng = self.rng
        if name in ("verb", "say"):
            return rng.choice(VERBS if name == "verb" else SAYS) + end
        if name in ("move", "mood"):
            verb = rng.choice(MOVES if name == "move" else MOODS)
            return feminine(verb, end)
        phrase = self.phrase(name, fixed)
        if name in ("h", "H"):
            text = phrase.form("nom") if case == "adj" else phrase.forms[case or "nom"]
        elif case == "place":
            text = phrase.form("pre")
        elif case == "into":
            text = phrase.form("acc")
        else:
            text = phrase.form(case or "nom")
        return text[0].upper() + text[1:] if name == "H" else text

    def phrase(self, name: str, fixed: dict[str, Phrase]) -> Phrase:
        """The fixed phrase of that letter or a fresh one."""
        key = name.lower() if name == "H" else name
        if key in fixed:
            return fixed[key]
        words = {
            "P": PLACES,
            "T": THINGS,
            "M": [h for h in HEROES if gender(h) == "m"],
            "X": TOPICS,
        }
        adj = self.rng.choice(ADJ) if self.rng.random() < 0.55 else ""
        return Phrase(self.rng.choice(words[key]), adj)

    def story(self) -> tuple[str, str, str]:
        rng = self.rng
        noun, adj = rng.choice(HEROES), rng.choice(ADJ)
        hero, bare = Phrase(noun, adj), Phrase(noun, adj if rng.random() < 0.4 else "")
        ask = rng.choice(STORY_ASKS)
        ask = ask.replace(
            "{о|про} [ask]", rng.choice((f"о {bare.form('pre')}", f"про {bare.form('anim')}"))
        )
        ask = self.fill(ask.replace("[anim]", bare.form("anim")), {"h": bare})
        parts = [rng.choice(OPENINGS), *rng.sample(EVENTS, rng.randint(3, 8)), rng.choice(ENDINGS)]
        text = " ".join(self.fill(p, {"h": hero}) for p in parts)
        return ask, text, f"Сказка, герой: {noun.split('(')[0]}. Начало, приключение, конец."

    def facts(self) -> tuple[str, str, str]:
        rng = self.rng
        topic = Phrase(rng.choice(TOPICS))
        ask = rng.choice(FACT_ASKS).replace("{о|про} [X.about]", f"о {topic.form('pre')}")
        ask = ask.replace(
            "{о|на тему:} [X.about2]",
            rng.choice((f"о {topic.form('pre')}", f"на тему: {topic.form('nom')}")),
        )
        ask = self.fill(ask, {"X": topic})
        parts = [FACTS[0], *rng.sample(FACTS[1:], rng.randint(3, 7))]
        text = " ".join(self.fill(p, {"X": topic}) for p in parts)
        return ask, text, f"Тема: {topic.form('nom')}. Объясняю просто."

    def letter(self) -> tuple[str, str, str]:
        ask = self.spin(
            "{Напиши|Составь} {письмо|короткое письмо|сообщение} {другу|бабушке|коллеге|учителю|соседу|сестре}{.|}"
        )
        parts = self.rng.sample(LETTERS, self.rng.randint(3, 5))
        body = " ".join(self.fill(p, {}) for p in parts)
        name = self.spin("{Анна|Иван|Ольга|Пётр|Вера|Олег}")
        text = self.spin("{Здравствуй|Привет|Добрый день}!\n\n") + body + f"\n\nТвой друг, {name}"
        return ask, text, "Письмо: приветствие, новости, подпись."

    def any(self) -> tuple[str, str, str]:
        """A random kind of prose."""
        return self.rng.choices((self.story, self.facts, self.letter), (55, 37, 8))[0]()


def feminine(verb: str, end: str) -> str:
    """A masculine past tense in another gender, reflexive or not."""
    if not end:
        return verb
    return verb[:-2] + end + "сь" if verb.endswith("лся") else verb + end
