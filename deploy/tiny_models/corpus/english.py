"""English prose: stories, explanations, letters, descriptions and answers from our own grammar."""
# ruff: noqa: E501 - word lists and templates read better unbroken.

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from corpus.spin import Spinner

if TYPE_CHECKING:
    import random

RULES: dict[str, str | list[str]] = {
    "animal": "fox|wolf|bear|rabbit|owl|cat|dog|mouse|turtle|crow|horse|squirrel|hedgehog|swan|goat|lion|elephant|frog|badger|sparrow|whale|deer|duck|donkey|tiger|monkey|penguin|parrot|beaver|snail",
    "job": "baker|sailor|teacher|painter|farmer|doctor|gardener|clockmaker|fisherman|carpenter|librarian|musician|pilot|shepherd|tailor|miner|postman|cook|soldier|merchant|weaver|hunter|student|driver|captain|engineer",
    "being": "<animal>|<animal>|<job>|<job>|robot|dragon|ghost|princess|giant|witch|boy|girl|king|queen|old man|old woman|child|wizard|knight|traveller",
    "adj": "small|old|brave|quiet|clever|lonely|curious|kind|tired|proud|hungry|gentle|strange|lucky|young|wise|careful|silent|cheerful|stubborn|shy|grey|red|white|tall|poor|forgetful|patient",
    "name": "Anna|Tom|Mary|Peter|Lucy|Jack|Emma|Oliver|Nora|Sam|Clara|Henry|Rose|Ben|Alice|Leo|Mia|George|Ella|Max|Julia|Oscar|Ruth|David|Sara|Felix|Grace|Hugo|Ivy|Martin",
    "place": "forest|village|city|castle|island|valley|mountain|harbour|garden|desert|market|lighthouse|mill|river|meadow|cave|station|library|farm|bridge|town|swamp|field|beach|tower|school|kitchen|workshop|museum|lake",
    "thing": "key|map|lamp|letter|coin|ring|book|box|clock|mirror|bell|rope|feather|stone|flute|cup|boat|coat|basket|seed|photograph|violin|candle|compass|necklace|blanket|kite|lantern|wheel|shell",
    "mat": "silver|golden|wooden|glass|broken|rusty|tiny|heavy|painted|ancient|shining|paper|iron|blue|dusty|secret|warm|strange",
    "weather": "rain|snow|wind|fog|thunder|sunlight|frost|moonlight|mist|heat|storm|silence|darkness|starlight",
    "time": "one morning|one evening|that night|the next day|a week later|in the spring|at dawn|after lunch|late in the autumn|at midnight|before sunrise|on the third day|many years later|that summer|on a cold day|at the end of winter|an hour later|some time later",
    "feel": "happy|afraid|sad|surprised|angry|proud|calm|worried|glad|ashamed|hopeful|confused|relieved|excited|lonely|grateful",
    "verbpast": "walked|ran|looked|listened|waited|climbed|swam|rode|hurried|wandered|crawled|sailed|travelled|returned|went|came",
    "found": "found|saw|picked up|noticed|discovered|lost|hid|carried|opened|repaired|bought|stole|borrowed|dropped|painted|remembered",
    "said": "said|whispered|asked|answered|shouted|replied|thought|called|laughed|sighed",
    "quote": [
        "I have never seen such a <thing>",
        "we must go to the <place> before it is too late",
        "who lives in this <place>",
        "nobody believes me, but it is true",
        "please help me find my <thing>",
        "you are the first <being> to come here",
        "there is a <mat> <thing> under the old <place>",
        "I am not afraid of the <weather>",
        "let us share the bread and wait for the <weather> to end",
        "my father told me about this <place>",
        "a promise is a promise",
        "what do you want from me",
        "the <place> belongs to everyone",
        "it is better to try than to wait",
        "we can build a new <thing> together",
        "give me the <thing> and I will show you the way",
        "I only wanted to see the <place> again",
        "the answer was always in the <place>",
    ],
    "opening": [
        "Once upon a time there was a <adj> <hero> who lived near a <place>.",
        "Long ago, in a <adj> <place>, there lived a <adj> <hero>.",
        "The <hero> had lived in the <place> for many years, but nobody knew <pro> name.",
        "Every morning the <adj> <hero> went to the <place> to look for a <mat> <thing>.",
        "<name> was a <adj> <hero> who dreamed of seeing the <place>.",
        "It was a night of <weather> when the <adj> <hero> came to the <place>.",
        "Nobody in the <place> had ever met a <hero> as <adj> as this one.",
        "There was once a <hero> with a <mat> <thing> and no friends at all.",
        "The <weather> had just ended when the <hero> left the <place>.",
        "In the middle of the <place> stood a house, and in the house lived a <adj> <hero>.",
    ],
    "pro": "his|her",
    "event": [
        "<Time>, the <hero> <verbpast> to the <place> and <found> a <mat> <thing>.",
        "<Time>, a <adj> <being> came out of the <place>.",
        '"<Quote>," <said> the <being>.',
        '"<Quote>," <said> the <hero>, and the <being> was <feel>.',
        "The <hero> felt <feel>, because the <weather> was coming and the <place> was far away.",
        "The <weather> covered the <place>, and the <thing> began to shine.",
        "Without a word, the <being> gave the <hero> a <mat> <thing>.",
        "The <hero> <verbpast> through the <weather> for a long time.",
        "Under the <thing> there was a <mat> <thing>, and beside it slept a <adj> <being>.",
        "They <verbpast> together to the <place>, where the <weather> was gentle.",
        "But the <thing> was gone, and the <place> was full of <weather>.",
        "<Time>, the <adj> <being> forgot the way home.",
        "The <hero> asked a <being> for help, but the <being> only <verbpast> away.",
        "Behind the <place> somebody was singing about a <mat> <thing>.",
        "A <adj> <being> and a <adj> <being> were sitting by the fire and drinking tea.",
        "The <hero> tried to open the <thing>, then to break it, and at last to sing to it.",
        "Far away, a bell rang, and the <being> became <feel>.",
        "So the <hero> took the <thing>, thanked the <being> and <verbpast> on.",
        "No one had seen the <being> since the <weather> came.",
        "The people of the <place> were <feel> and did not sleep.",
        "It was not easy to be a <hero> in a <place> like this.",
        "Suddenly the door opened and <name> came in with a <mat> <thing>.",
        "<name> had a plan: first the <thing>, then the <place>.",
        "That was how the <hero> learned to listen to the <weather>.",
    ],
    "ending": [
        "And from that day on the <place> was never empty again.",
        "The <hero> kept the <thing> for the rest of <pro> life.",
        "At last the <hero> came home, tired and <feel>.",
        "In the end they became friends, and the <thing> belonged to both of them.",
        "And if you go to the <place> today, you may still hear the <hero> in the <weather>.",
        "The <hero> smiled, closed the <thing> and fell asleep.",
        "After that, nobody called the <hero> <adj> any more.",
        "So the story ends where it began, in the <adj> <place>.",
    ],
    "Time": "One morning|One evening|That night|The next day|A week later|In the spring|At dawn|After lunch|Late in the autumn|At midnight|Before sunrise|On the third day|Many years later|That summer|On a cold day|Some time later",
    "noun": "bridge|engine|volcano|clock|computer|battery|rainbow|market|plant|telescope|heart|refrigerator|bicycle|tide|compiler|vaccine|airplane|magnet|bank|language|cloud|memory|elevator|solar panel|river|star|printer|camera|lock|piano|earthquake|thermometer|network|radio|glacier|kidney|microscope|satellite|wheel|windmill|dam|submarine|windmill|lamp|robot|train|virus|budget|law|school",
    "abstract": "friendship|time|democracy|music|gravity|sleep|courage|trade|history|education|art|light|evolution|electricity|memory|justice|fear|money|travel|nature|honesty|work|freedom|happiness|health|sound|energy|heat|culture|science",
    "class": "machine|system|device|process|structure|tool|idea|mixture|chain of small steps|way to move energy|place where forces meet|pattern|balance|set of parts|habit|kind of agreement|living thing|signal",
    "part": "surface|frame|core|spring|wire|cable|cell|valve|shaft|layer|wall|edge|pipe|lens|gear|blade|tank|base|axle|filter|pump|switch|plate|tube|root|leaf|motor|signal|support|beam",
    "force": "pressure|weight|heat|current|light|water|air|friction|tension|energy|speed|gravity|motion|information|demand|time|cold|attention|sound|salt",
    "doing": "moves|holds|pushes|carries|stores|turns|changes|protects|measures|pulls|spreads|slows|warms|cools|collects|joins|separates|supports|controls|absorbs",
    "quality": "simple|strong|slow|cheap|fragile|useful|important|surprising|common|rare|stable|difficult|efficient|dangerous|flexible|natural",
    "person": "engineers|scientists|doctors|children|farmers|teachers|most people|workers|builders|families|historians|programmers|visitors|researchers|citizens",
    "explain": [
        "The <part> <doing> the <force>, and the <part> <doing> what is left.",
        "When the <force> grows, the <part> becomes <quality>.",
        "This is why <person> check the <part> before they trust the whole.",
        "Without the <part>, the <force> would reach the <part> and damage it.",
        "In other words, the <it> <doing> <force> from one place to another.",
        "A second reason is <force>: it <doing> the <part> even when nobody looks.",
        "For example, <person> often compare it with a <noun>.",
        "The <part> is <quality>, but the <part> must be <quality>.",
        "Because of this, the <it> needs less <force> than a <noun> does.",
        "First the <part> <doing> the <force>; then the <part> <doing> the rest.",
        "<Person> learned this slowly, mostly from mistakes.",
        "The important thing is the balance between <force> and <force>.",
        "If one <part> fails, the others share the <force>.",
        "Small changes in <force> make a <quality> difference.",
        "Over the years <person> have made the <part> more <quality>.",
        "It looks <quality>, yet the idea behind it is <quality>.",
        "What we see outside is only the <part>; the real work happens in the <part>.",
        "In hot weather the <part> expands, so there must be room for it.",
        "The same idea is used in a <noun> and even in <abstract>.",
        "A <quality> <part> costs more but lasts longer.",
    ],
    "Person": "Engineers|Scientists|Doctors|Children|Farmers|Teachers|Most people|Workers|Builders|Families|Historians|Programmers|Visitors|Researchers|Citizens",
    "define": [
        "A <it> is a <class> that <doing> <force>.",
        "A <it> works by the way its <part> <doing> <force>.",
        "The <it> is a <quality> <class>, and the idea behind it is <quality>.",
        "To understand the <it>, think of a <class> that <doing> <force>.",
        "At its heart, the <it> is a <class>: something <doing> <force>, and something else answers.",
        "Simply put, the <it> <doing> <force> so that <person> do not have to.",
    ],
    "close": [
        "That is why the <it> is still so <quality> today.",
        "In short, the <it> <doing> <force> and asks for little in return.",
        "So the next time you see a <it>, look at the <part> first.",
        "All of this makes the <it> a <quality> <class>.",
        "Nothing about it is magic; it is <force> and patience.",
    ],
    "think": [
        "<Abstract> is never <quality>, but it <doing> people in a <quality> way.",
        "I think <abstract> matters most when <person> have little <force>.",
        "Some say <abstract> comes before <abstract>; others believe the opposite.",
        "When I was young, <abstract> seemed <quality> to me.",
        "<Person> need <abstract> as much as they need <abstract>.",
        "There is a <quality> side to <abstract> which we often forget.",
        "On the other hand, too much <abstract> can make us <feel>.",
        "It starts at home, in the <place>, long before we can name it.",
        "We learn it from a <adj> <job> or a <adj> friend, not from a book.",
        "Without it, <abstract> would be only a word.",
        "Perhaps <abstract> and <abstract> are two names for one thing.",
        "A <place> without <abstract> is just a <place>.",
    ],
    "Abstract": "Friendship|Time|Democracy|Music|Gravity|Sleep|Courage|Trade|History|Education|Art|Light|Evolution|Memory|Justice|Fear|Money|Travel|Nature|Honesty|Work|Freedom|Happiness|Health|Sound|Energy|Culture|Science",
    "sense": [
        "The <place> smelled of <weather> and old <thing>s.",
        "A <mat> <thing> hung above the door.",
        "On the left there was a <place>, on the right only <weather>.",
        "<Person> were talking about the <weather> and a lost <thing>.",
        "Somewhere a <animal> was calling.",
        "The light fell on a <mat> <thing> beside the window.",
        "A <adj> <job> was counting coins near the <place>.",
        "Everything looked <adj>, as if the <weather> had washed it.",
        "I could hear the <weather> and, behind it, the <place>.",
        "The walls were <mat>, and the floor was cold.",
    ],
    "letter": [
        "Thank you for the <mat> <thing> you sent me from the <place>.",
        "I am writing because of the <thing> we talked about last week.",
        "The work at the <place> is going well, and the <job> sends greetings.",
        "Could we move our meeting to {Monday|Tuesday|Wednesday|Thursday|Friday} at {nine|ten|eleven|two|three|four}?",
        "The <weather> has been terrible, but we are <feel>.",
        "I would be <feel> to show you the <place> when you come.",
        "Please bring the <thing> and, if you can, a <mat> <thing>.",
        "I am sorry for the delay; the <job> was ill and the <thing> was late.",
        "We need your answer before the end of the {week|month|year}.",
        "Everybody here remembers your visit to the <place>.",
        "If anything is unclear, just call me in the {morning|evening|afternoon}.",
        "The children found a <animal> and want to keep it.",
    ],
    "line": [
        "The <weather> sleeps upon the <place>,",
        "A <adj> <animal> walks alone,",
        "I left my <thing> in the <place>,",
        "The <mat> <thing> is cold as stone,",
        "And no one knows the <weather>'s name,",
        "O <adj> <place>, O <adj> day,",
        "The <animal> sings, the <animal> hears,",
        "We came by <weather>, went by <weather>,",
        "My <abstract> is a <mat> <thing>,",
        "And far beyond the <adj> <place>",
        "Tomorrow is a <mat> door,",
        "The <job> dreams of <abstract> now,",
    ],
}
STORY_ASKS = [
    "{Write|Tell me|Tell|Compose|Give me|Make up|Invent} {a|one} {short |little |bedtime |funny |sad |}{story|tale|fairy tale} about a <adj> <hero>{.|}",
    "{Write|Tell me|Can you write|Please write|Could you tell me} a {short |}{story|tale} about a <hero>{.| please.|?|}",
    "{Write|Tell me} a story {in which|where} a <hero> {meets a <being>|finds a <thing>|goes to the <place>|loses a <thing>}.",
    "{I want|I would like} a {short |}{story|fairy tale} about a <hero> and a <being>.",
    "{Continue the story|Continue}: The <hero> came to the <place>.",
    "Story about a <hero>",
    "{Write|Create} a {paragraph|scene|short scene} about a <hero> in a <place>.",
    "Once upon a time there was a <hero>. {Continue.|What happened next?|Go on.}",
]
EXPLAIN_ASKS = [
    "{Explain|Describe|Tell me} how a <it> works{.|}",
    "{How does|Why does} a <it> work?",
    "What is a <it>{?|, and why is it important?| and how does it work?}",
    "{Explain|Describe} {in simple words|simply|to a child|briefly} {what a <it> is|how a <it> works}.",
    "{Can you|Could you|Please} explain {the idea of a <it>|how a <it> works}{?|.}",
    "{Write|Give me} {a paragraph|a short explanation|a short text} about {the|a} <it>.",
    "Why do we need a <it>?",
    "{Tell me|Talk} about {the|a} <it>{.|}",
]
ESSAY_ASKS = [
    "{Write|Compose} {a short essay|an essay|a few sentences|a paragraph|a short text} {about|on} <topic>{.|}",
    "What do you think about <topic>?",
    "{Why is|Is} <topic> important{?|for us?| today?}",
    "{Share|Tell me} your {thoughts|opinion} {on|about} <topic>.",
    "{Discuss|Reflect on} <topic>{.|}",
    "{What is|What does} <topic>{?| mean?}",
]
SCENE_ASKS = [
    "{Describe|Write about} {a|an old|the} <place>{.| in the <weather>.| at night.| in the morning.}",
    "{Describe|Picture} a {quiet|busy|cold|warm|strange} <place>{.|}",
    "What does {a|the} <place> look like?",
]
LETTER_ASKS = [
    "{Write|Draft} {a letter|a short letter|an email|a message|a friendly email} to {a friend|my <job>|<name>|a colleague|my boss|my neighbour}{.| about a <thing>.| about the <place>.}",
    "{Help me write|Please write} {an email|a letter} {asking for a meeting|saying thank you|about the <place>|to <name>}.",
]
POEM_ASKS = [
    "{Write|Compose|Give me} a {short |}{poem|verse} about {<weather>|the <place>|a <animal>|<abstract>}{.|}",
]


class English:
    """One prompt and one answer at a time; every method returns (prompt, answer, plan)."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.spin = rng, Spinner(RULES, rng)

    def quoted(self, text: str, bound: dict[str, str]) -> str:
        """Expand, with <Quote> as a fresh capitalised quotation."""
        if "<Quote>" in text:
            said = self.spin("<quote>")
            text = text.replace("<Quote>", said[0].upper() + said[1:])
        return self.spin(text, bound)

    def story(self) -> tuple[str, str, str]:
        bound = {"hero": self.spin("<being>")}
        ask = self.spin(self.rng.choice(STORY_ASKS), dict(bound))
        bound["pro"] = self.spin("<pro>")
        parts = [self.rng.choice(RULES["opening"])]
        parts += self.rng.sample(RULES["event"], self.rng.randint(4, 11))
        parts.append(self.rng.choice(RULES["ending"]))
        hero = bound["hero"]
        lines = [self.quoted(p, dict(bound)) for p in parts]
        if self.rng.random() < 0.4 and len(lines) > 6:
            lines[len(lines) // 2] = "\n\n" + lines[len(lines) // 2]
        text = " ".join(lines).replace(" \n\n", "\n\n")
        return ask, text, f"A story about a {hero}. It needs a beginning, a problem and an end."

    def explain(self) -> tuple[str, str, str]:
        bound = {"it": self.spin("<noun>")}
        ask = self.spin(self.rng.choice(EXPLAIN_ASKS), dict(bound))
        parts = [self.rng.choice(RULES["define"])]
        parts += self.rng.sample(RULES["explain"], self.rng.randint(3, 9))
        parts.append(self.rng.choice(RULES["close"]))
        text = " ".join(self.spin(p, dict(bound)) for p in parts)
        return ask, text, f"The user asks about a {bound['it']}. I explain it in simple words."

    def essay(self) -> tuple[str, str, str]:
        topic = self.spin("<abstract>")
        ask = self.spin(self.rng.choice(ESSAY_ASKS), {"topic": topic})
        parts = self.rng.sample(RULES["think"], self.rng.randint(4, 9))
        first = parts[0].replace("<Abstract>", topic.capitalize())
        text = " ".join(self.spin(p, {}) for p in [first, *parts[1:]])
        return ask, text, f"The topic is {topic}. I give a few thoughts."

    def scene(self) -> tuple[str, str, str]:
        bound: dict[str, str] = {"place": self.spin("<place>")}
        ask = self.spin(self.rng.choice(SCENE_ASKS), dict(bound))
        parts = self.rng.sample(RULES["sense"], self.rng.randint(4, 8))
        text = " ".join(self.spin(p, dict(bound) if self.rng.random() < 0.5 else {}) for p in parts)
        return ask, text, f"A description of the {bound['place']}: sights and sounds."

    def letter(self) -> tuple[str, str, str]:
        ask = self.spin(self.rng.choice(LETTER_ASKS))
        parts = self.rng.sample(RULES["letter"], self.rng.randint(3, 6))
        body = " ".join(self.spin(p) for p in parts)
        text = self.spin(
            f"Dear <name>,\n\n{body}\n\n{{Best regards|Yours|With love|Kind regards}},\n<name>"
        )
        return ask, text, "A short letter: greeting, a few sentences, a closing."

    def poem(self) -> tuple[str, str, str]:
        ask = self.spin(self.rng.choice(POEM_ASKS))
        lines = [self.spin(p) for p in self.rng.sample(RULES["line"], self.rng.choice((4, 8, 8)))]
        lines[-1] = lines[-1].rstrip(",") + "."
        return ask, "\n".join(lines), "A short poem."

    def any(self) -> tuple[str, str, str]:
        """A random kind of prose."""
        kinds = (self.story, self.explain, self.essay, self.scene, self.letter, self.poem)
        ask, text, plan = self.rng.choices(kinds, (34, 30, 14, 9, 9, 4))[0]()
        return articles(ask), articles(text), articles(plan)


def articles(text: str) -> str:
    """a before a vowel becomes an."""
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
