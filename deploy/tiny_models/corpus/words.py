"""Word lists, record schemas and known sequences of the structured answers."""
# ruff: noqa: E501, SIM905 - word lists and templates read better unbroken.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random

    from corpus.spin import Spinner

RULES: dict[str, str | list[str]] = {
    "verb": "Write|Give me|Create|Generate|Produce|Make|Return|Show me|Output|Build|I need|Provide|Please write|Can you write|Write me",
    "first": "Anna|Tom|Mary|Peter|Lucy|Jack|Emma|Oliver|Nora|Sam|Clara|Henry|Rose|Ben|Alice|Leo|Mia|George|Ella|Max|John|Maria|Bob|Kate",
    "last": "Smith|Brown|Miller|Wilson|Taylor|Green|Young|King|Baker|Hill|Clark|Adams|Cook|Ward|Stone|Fisher|White|Walker",
    "city": "Paris|London|Berlin|Madrid|Rome|Oslo|Vienna|Prague|Lisbon|Dublin|Tokyo|Boston|Toronto|Sydney|Athens|Warsaw|Moscow|Cairo",
    "country": "France|England|Germany|Spain|Italy|Norway|Austria|Portugal|Ireland|Japan|Canada|Australia|Greece|Poland|Russia|Egypt|Brazil|India",
    "job": "teacher|doctor|engineer|nurse|pilot|cook|writer|painter|farmer|driver|lawyer|designer|developer|manager|student|chemist",
    "object": "lamp|phone|chair|bridge|pen|ship|guitar|camera|garden|planet|bird|tree|shoe|watch|bicycle|tool|toy|cake|song|website|server|package|school|hotel|museum|island|robot|cloud|river|horse|plant|window|bag|train|ticket|game|star|computer|flower|cup|house|laptop|dog|cat|cake|team|club|task|project|message|note|photo|device|sensor|fruit|animal",
    "color": "red|blue|green|black|white|yellow|grey|brown|orange|silver",
    "adjective": "small|large|simple|modern|classic|light|strong|fast|quiet|bright|useful|popular",
    "title": "The {Last|Silent|Golden|Hidden|Long|Lost|Old|Secret} {Garden|Road|River|House|Night|Island|Letter|Door}",
    "word": "alpha|beta|basic|main|first|test|sample|extra|public|local|daily|core",
    "sentence": "A {small|large|simple|modern|classic|useful|popular} {and|but} {light|strong|fast|quiet|bright|cheap} {item|thing|model|product} for {home|work|school|travel|everyone|children}.",
    "mail": "{anna|tom|mary|peter|lucy|jack|emma|sam|info|admin}@example.{com|org|net}",
    "street": "{Main|Oak|Park|River|Hill|Green|Church|Lake} Street",
    "genre": "novel|fantasy|drama|history|comedy|science|adventure|poetry|mystery",
    "brand": "Nova|Orion|Apex|Luna|Delta|Vega|Atlas|Polar",
    "ingredient": "flour|sugar|butter|salt|milk|eggs|rice|tomato|onion|cheese|garlic|oil|pepper|water|chicken|potato",
    "dish": "pancakes|tomato soup|rice salad|apple pie|fried potatoes|cheese pasta|chicken curry|vegetable stew|omelette|bread",
    "status": "active|pending|done|new|closed|open",
    "tag": "new|sale|home|work|family|travel|music|food|sport|study|city|nature",
    "unit": "kg|cm|pcs|liters",
    "sky": "sunny|cloudy|rainy|windy|snowy|foggy",
    "lang": "English|French|German|Spanish|Italian|Russian|Japanese",
    "sport": "football|tennis|chess|swimming|running|hockey|basketball",
    "species": "cat|dog|horse|rabbit|parrot|hamster|turtle",
    "level": "low|medium|high",
    "ru_first": "Анна|Иван|Мария|Пётр|Ольга|Сергей|Елена|Андрей|Наталья|Дмитрий|Вера|Павел|Ирина|Олег|Юлия|Максим",
    "ru_last": "Орлов|Волков|Лебедев|Соколов|Зайцев|Белов|Громов|Котов|Рыбаков|Воробьёв",
    "ru_city": "Москва|Казань|Самара|Томск|Омск|Пермь|Тула|Сочи|Рязань|Псков|Минск|Тверь",
    "ru_country": "Россия|Франция|Германия|Испания|Италия|Норвегия|Япония|Канада|Греция|Польша|Египет|Индия",
    "ru_job": "учитель|врач|инженер|повар|пилот|художник|писатель|водитель|юрист|программист|студент|фермер",
    "ru_object": "лампа|телефон|стул|мост|ручка|корабль|гитара|камера|сад|планета|птица|дерево|часы|велосипед|игрушка|торт|песня|сайт|сервер|школа|отель|музей|остров|робот|облако|река|лошадь|цветок|окно|сумка|поезд|игра|звезда|компьютер|дом|ноутбук|собака|кошка|команда|задача|проект|сообщение|фрукт|животное",
    "ru_color": "красный|синий|зелёный|чёрный|белый|жёлтый|серый|коричневый",
    "ru_title": "{Последний|Тихий|Золотой|Долгий|Старый|Тайный} {сад|путь|дом|вечер|остров|город}",
    "ru_sentence": "{Простая|Новая|Удобная|Полезная|Популярная} {и|но} {лёгкая|прочная|быстрая|тихая|яркая} {вещь|модель} для {дома|работы|школы|детей|всех}.",
    "ru_word": "основной|первый|тест|новый|общий|местный",
    "ru_genre": "роман|фантастика|драма|история|комедия|приключения|поэзия",
    "ru_ingredient": "мука|сахар|масло|соль|молоко|яйца|рис|помидор|лук|сыр|чеснок|перец|вода|картофель",
    "ru_dish": "блины|суп|салат|пирог|каша|борщ|омлет|хлеб|плов",
    "ru_status": "новый|готов|закрыт|открыт|в работе",
    "ru_tag": "дом|работа|семья|музыка|еда|спорт|учёба|город|природа",
    "ru_sky": "солнечно|облачно|дождь|ветер|снег|туман",
    "ru_species": "кошка|собака|лошадь|кролик|попугай|хомяк",
    "ru_level": "низкий|средний|высокий",
    "ru_street": "улица {Мира|Лесная|Садовая|Новая|Речная|Школьная}",
    "goal": "make tea|bake bread|plant a tree|clean a room|paint a wall|wash a car|learn a language|write a letter|fix a bicycle|cook rice|plan a trip|start a blog|save money|install a program|make a sandwich|build a website|prepare for an exam|train a dog|boil an egg|grow tomatoes|organize a party|write a report|set up a router|make coffee|change a tire",
    "step": [
        "{Prepare|Collect|Check|Clean} {the tools|all the parts|everything you need|the materials|the place}.",
        "{Read|Follow} the instructions {carefully|step by step}.",
        "Wait {two|five|ten|fifteen|twenty|thirty} minutes.",
        "{Mix|Join|Put together|Stir} {the parts|everything} {slowly|well|carefully}.",
        "{Check|Test|Look at} the result.",
        "{Ask|Call} {a friend|an expert|a teacher} {for help|for advice}.",
        "{Add|Use} {a little|some|enough} {water|oil|time|light|salt|space}.",
        "{Repeat|Do it again} {if needed|until it works|every day}.",
        "{Write down|Remember|Save} {what you did|the result|the settings}.",
        "{Clean up|Put everything away} {when you finish|at the end}.",
        "{Choose|Find} {a good place|the right size|a quiet room|a simple plan}.",
        "{Turn on|Turn off|Open|Close} the {lamp|window|machine|box|stove}.",
        "{Enjoy|Share} the result.",
    ],
    "ru_goal": "заварить чай|испечь хлеб|посадить дерево|убрать комнату|покрасить стену|помыть машину|выучить язык|написать письмо|починить велосипед|сварить рис|спланировать поездку|накопить деньги|установить программу|сделать бутерброд|создать сайт|подготовиться к экзамену|сварить яйцо|вырастить помидоры|сварить кофе",
    "ru_step": [
        "{Подготовьте|Соберите|Проверьте} {инструменты|все части|всё нужное|материалы|место}.",
        "{Прочитайте|Следуйте} инструкции {внимательно|шаг за шагом}.",
        "Подождите {две|пять|десять|двадцать|тридцать} минут.",
        "{Смешайте|Соедините|Соберите} {части|всё} {медленно|хорошо|аккуратно}.",
        "{Проверьте|Посмотрите на} результат.",
        "{Спросите|Позовите} {друга|учителя|мастера}.",
        "Добавьте {немного|достаточно} {воды|масла|времени|света|соли}.",
        "Повторите {при необходимости|ещё раз|каждый день}.",
        "{Запишите|Сохраните} {результат|настройки}.",
        "Уберите всё на место.",
        "{Выберите|Найдите} {хорошее место|нужный размер|тихую комнату|простой план}.",
        "{Включите|Выключите|Откройте|Закройте} {лампу|окно|коробку|плиту}.",
    ],
}
# A field is a rule name, a (low, high) range, "bool", "date", "price", or a list [rule, count].
SCHEMAS: dict[str, dict[str, Any]] = {
    "book": {
        "title": "title",
        "author": "person",
        "year": (1950, 2024),
        "pages": (100, 600),
        "genre": "genre",
        "available": "bool",
        "price": "price",
    },
    "person": {
        "id": "id",
        "name": "person",
        "age": (18, 80),
        "email": "mail",
        "city": "city",
        "job": "job",
        "married": "bool",
    },
    "user": {
        "id": "id",
        "username": "login",
        "name": "person",
        "email": "mail",
        "age": (18, 80),
        "active": "bool",
        "role": "role",
    },
    "city": {
        "name": "city",
        "country": "country",
        "population": "big",
        "area": (50, 900),
        "capital": "bool",
        "founded": (800, 1900),
    },
    "country": {
        "name": "country",
        "capital": "city",
        "population": "big",
        "language": "lang",
        "currency": "currency",
    },
    "car": {
        "brand": "brand",
        "model": "model",
        "year": (1995, 2024),
        "color": "color",
        "price": "price",
        "electric": "bool",
        "doors": (2, 5),
    },
    "movie": {
        "title": "title",
        "director": "person",
        "year": (1960, 2024),
        "genre": "genre",
        "rating": "rating",
        "actors": ["person", 3],
    },
    "recipe": {
        "name": "dish",
        "servings": (1, 8),
        "time_minutes": "tens",
        "ingredients": ["ingredient", 4],
        "difficulty": "level",
        "vegetarian": "bool",
    },
    "product": {
        "id": "id",
        "name": "object",
        "price": "price",
        "category": "tag",
        "in_stock": "bool",
        "rating": "rating",
        "color": "color",
    },
    "weather": {
        "city": "city",
        "date": "date",
        "temperature": (-15, 35),
        "humidity": (20, 95),
        "condition": "sky",
        "wind": (0, 20),
    },
    "order": {
        "id": "id",
        "customer": "person",
        "date": "date",
        "items": ["object", 3],
        "total": "price",
        "status": "status",
    },
    "student": {
        "id": "id",
        "name": "person",
        "grade": (1, 12),
        "age": (7, 25),
        "subjects": ["subject", 3],
        "score": (50, 100),
    },
    "pet": {
        "name": "first",
        "species": "species",
        "age": (1, 15),
        "color": "color",
        "owner": "person",
        "vaccinated": "bool",
    },
    "company": {
        "name": "brand",
        "city": "city",
        "employees": "tens",
        "founded": (1950, 2020),
        "industry": "tag",
        "public": "bool",
    },
    "event": {
        "title": "title",
        "date": "date",
        "time": "clock",
        "city": "city",
        "participants": ["first", 3],
        "online": "bool",
    },
    "address": {
        "street": "street",
        "number": (1, 120),
        "city": "city",
        "country": "country",
        "zip": "zip",
    },
    "config": {
        "name": "word",
        "version": "version",
        "host": "host",
        "port": "port",
        "debug": "bool",
        "timeout": "tens",
        "retries": (1, 5),
    },
    "employee": {
        "id": "id",
        "name": "person",
        "position": "job",
        "salary": "big",
        "department": "tag",
        "email": "mail",
        "active": "bool",
    },
    "song": {
        "title": "title",
        "artist": "person",
        "album": "title",
        "year": (1960, 2024),
        "duration": (120, 400),
        "genre": "genre",
    },
    "task": {
        "id": "id",
        "title": "title",
        "status": "status",
        "priority": "level",
        "due": "date",
        "done": "bool",
    },
    "invoice": {
        "id": "id",
        "customer": "person",
        "date": "date",
        "amount": "price",
        "paid": "bool",
        "currency": "currency",
    },
    "flight": {
        "id": "id",
        "origin": "city",
        "destination": "city",
        "date": "date",
        "departure": "clock",
        "price": "price",
        "direct": "bool",
    },
    "planet": {
        "name": "planet",
        "moons": (0, 80),
        "diameter": "big",
        "distance": "big",
        "rings": "bool",
    },
    "thing": {
        "id": "id",
        "name": "object",
        "type": "word",
        "description": "sentence",
        "color": "color",
        "price": "price",
        "size": "level",
        "weight": (1, 90),
        "tags": ["tag", 3],
        "active": "bool",
        "created": "date",
        "rating": "rating",
    },
}
TITLES_RU = {
    "book": "книга",
    "person": "человек",
    "user": "пользователь",
    "city": "город",
    "country": "страна",
    "car": "машина",
    "movie": "фильм",
    "recipe": "рецепт",
    "product": "товар",
    "weather": "погода",
    "order": "заказ",
    "student": "студент",
    "pet": "питомец",
    "company": "компания",
    "event": "событие",
    "address": "адрес",
    "config": "настройки",
    "employee": "сотрудник",
    "song": "песня",
    "task": "задача",
    "invoice": "счёт",
    "flight": "рейс",
    "planet": "планета",
    "thing": "предмет",
}
HEADS_RU = {
    "id": "Номер",
    "name": "Имя",
    "title": "Название",
    "author": "Автор",
    "year": "Год",
    "price": "Цена",
    "age": "Возраст",
    "city": "Город",
    "country": "Страна",
    "date": "Дата",
    "color": "Цвет",
    "status": "Статус",
    "email": "Почта",
    "rating": "Оценка",
    "genre": "Жанр",
    "population": "Население",
    "job": "Работа",
    "pages": "Страницы",
    "model": "Модель",
    "brand": "Марка",
    "capital": "Столица",
    "total": "Сумма",
    "active": "Активен",
    "category": "Раздел",
}
PLANETS = "Mercury|Venus|Earth|Mars|Jupiter|Saturn|Uranus|Neptune"
LISTS = {
    "fruits": "apple|banana|orange|grape|pear|peach|plum|cherry|lemon|mango|kiwi|melon|pineapple|apricot|fig|lime|papaya|strawberry|blueberry|raspberry",
    "animals": "cat|dog|horse|cow|lion|tiger|elephant|bear|wolf|fox|rabbit|deer|monkey|giraffe|zebra|whale|dolphin|eagle|owl|snake",
    "countries": "France|Germany|Spain|Italy|Norway|Japan|Canada|Brazil|India|China|Egypt|Greece|Poland|Russia|Mexico|Kenya|Chile|Cuba|Peru|Turkey",
    "cities": "Paris|London|Berlin|Madrid|Rome|Oslo|Vienna|Prague|Lisbon|Dublin|Tokyo|Boston|Toronto|Sydney|Athens|Warsaw|Moscow|Cairo",
    "colors": "red|blue|green|yellow|black|white|orange|purple|brown|pink|grey|silver|gold|turquoise|violet",
    "vegetables": "carrot|potato|tomato|onion|cabbage|cucumber|pepper|garlic|bean|pea|corn|pumpkin|spinach|beet|radish",
    "sports": "football|tennis|basketball|swimming|running|hockey|boxing|cycling|skiing|golf|rugby|chess|volleyball|rowing",
    "professions": "teacher|doctor|engineer|nurse|pilot|cook|writer|painter|farmer|driver|lawyer|designer|developer|manager",
    "programming languages": "Python|Java|C|C++|Go|Rust|Ruby|PHP|Swift|Kotlin|JavaScript|TypeScript|Perl|Haskell|Lua",
    "birds": "eagle|owl|sparrow|crow|swan|duck|goose|parrot|pigeon|hawk|robin|penguin|stork|swallow",
    "musical instruments": "piano|guitar|violin|drum|flute|trumpet|cello|harp|saxophone|clarinet|organ|accordion",
    "trees": "oak|pine|birch|maple|willow|cedar|ash|elm|palm|fir|beech|poplar",
    "tools": "hammer|saw|screwdriver|wrench|drill|pliers|knife|level|chisel|axe|ruler|file",
    "rivers": "Nile|Amazon|Danube|Volga|Rhine|Thames|Seine|Ganges|Congo|Mississippi|Don|Dnieper",
    "foods": "bread|cheese|rice|pasta|soup|salad|pizza|egg|fish|chicken|cake|yogurt|honey|butter",
    "hobbies": "reading|painting|fishing|cooking|dancing|hiking|gardening|photography|singing|drawing|knitting|running",
    "ideas for a weekend": "visit a museum|read a book|cook a new dish|walk in the park|call an old friend|clean the house|watch a film|play chess|ride a bicycle|plant flowers|write a letter|learn a song",
    "tips for better sleep": "go to bed early|keep the room dark|avoid coffee|read a book|turn off the phone|take a walk|open the window|keep a schedule|drink warm milk|avoid heavy food",
    "benefits of exercise": "better sleep|stronger heart|more energy|good mood|less stress|strong muscles|clear mind|better balance|healthy weight|longer life",
    "reasons to read": "new ideas|better memory|richer language|less stress|good company|knowledge|imagination|focus|quiet time|better writing",
    "items for a trip": "passport|ticket|phone|charger|water|map|jacket|shoes|book|soap|towel|camera|medicine|money",
    "kitchen items": "pot|pan|knife|spoon|fork|plate|cup|bowl|kettle|oven|fridge|board",
    "questions for an interview": "Why this job?|What are your strengths?|Where do you see yourself?|What do you do best?|How do you learn?|What was your hardest task?|Why did you leave?|How do you plan?",
}
LISTS_RU = {
    "фруктов": "яблоко|банан|апельсин|виноград|груша|персик|слива|вишня|лимон|манго|киви|дыня|ананас|абрикос|гранат",
    "животных": "кошка|собака|лошадь|корова|лев|тигр|слон|медведь|волк|лиса|заяц|олень|обезьяна|жираф|кит",
    "стран": "Франция|Германия|Испания|Италия|Норвегия|Япония|Канада|Бразилия|Индия|Китай|Египет|Греция|Польша|Россия|Мексика",
    "городов": "Москва|Казань|Самара|Томск|Омск|Пермь|Тула|Сочи|Париж|Лондон|Берлин|Рим|Прага|Вена",
    "цветов": "красный|синий|зелёный|жёлтый|чёрный|белый|оранжевый|фиолетовый|коричневый|розовый|серый",
    "овощей": "морковь|картофель|помидор|лук|капуста|огурец|перец|чеснок|горох|тыква|свёкла|редис",
    "профессий": "учитель|врач|инженер|повар|пилот|художник|писатель|водитель|юрист|программист|строитель",
    "видов спорта": "футбол|теннис|баскетбол|плавание|бег|хоккей|бокс|шахматы|лыжи|волейбол|гребля",
    "птиц": "орёл|сова|воробей|ворона|лебедь|утка|гусь|попугай|голубь|ястреб|аист|ласточка",
    "деревьев": "дуб|сосна|берёза|клён|ива|кедр|ясень|ель|липа|тополь|рябина",
    "рек": "Волга|Дон|Днепр|Обь|Лена|Енисей|Амур|Кама|Ока|Нева|Дунай|Нил",
    "продуктов": "хлеб|сыр|молоко|рис|яйца|мясо|рыба|масло|сахар|соль|чай|картофель",
    "инструментов": "молоток|пила|отвёртка|дрель|нож|топор|линейка|ключ|рубанок|уровень",
    "языков программирования": "Python|Java|C|Go|Rust|Ruby|PHP|Swift|Kotlin|JavaScript|Perl|Lua",
    "идей для выходных": "сходить в музей|почитать книгу|приготовить ужин|погулять в парке|позвонить другу|убрать дом|посмотреть фильм|сыграть в шахматы|посадить цветы",
    "советов для хорошего сна": "ложиться рано|проветрить комнату|не пить кофе|почитать книгу|выключить телефон|погулять вечером|пить тёплое молоко",
    "вещей в дорогу": "паспорт|билет|телефон|зарядка|вода|карта|куртка|книга|мыло|полотенце|деньги|лекарства",
}
ORDERED = {
    "days of the week": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
    "months of the year": "January|February|March|April|May|June|July|August|September|October|November|December",
    "planets of the solar system": PLANETS,
    "planets": PLANETS,
    "letters of the alphabet": "|".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "seasons": "winter|spring|summer|autumn",
    "continents": "Africa|Antarctica|Asia|Australia|Europe|North America|South America",
    "colors of the rainbow": "red|orange|yellow|green|blue|indigo|violet",
    "months": "January|February|March|April|May|June|July|August|September|October|November|December",
    "oceans": "Pacific|Atlantic|Indian|Southern|Arctic",
}
ORDERED_RU = {
    "дни недели": "понедельник|вторник|среда|четверг|пятница|суббота|воскресенье",
    "месяцы года": "январь|февраль|март|апрель|май|июнь|июль|август|сентябрь|октябрь|ноябрь|декабрь",
    "месяцы": "январь|февраль|март|апрель|май|июнь|июль|август|сентябрь|октябрь|ноябрь|декабрь",
    "планеты Солнечной системы": "Меркурий|Венера|Земля|Марс|Юпитер|Сатурн|Уран|Нептун",
    "планеты": "Меркурий|Венера|Земля|Марс|Юпитер|Сатурн|Уран|Нептун",
    "времена года": "зима|весна|лето|осень",
    "цвета радуги": "красный|оранжевый|жёлтый|зелёный|голубой|синий|фиолетовый",
    "буквы русского алфавита": "|".join("АБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ"),
    "материки": "Африка|Антарктида|Евразия|Австралия|Северная Америка|Южная Америка",
}
ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
ONES_RU = "ноль один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать".split()
TENS_RU = "_ _ двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто".split()


def spoken(n: int, ru: bool) -> str:
    """A number from 0 to 100 in words."""
    ones, tens, joint = (ONES_RU, TENS_RU, " ") if ru else (ONES, TENS, "-")
    if n == 100:
        return "сто" if ru else "one hundred"
    if n < 20:
        return ones[n]
    return tens[n // 10] + (joint + ones[n % 10] if n % 10 else "")


def value(rng: random.Random, spin: Spinner, kind: Any, ru: bool) -> Any:
    """One value of a field of SCHEMAS."""
    if isinstance(kind, tuple):
        return rng.randint(*kind)
    if isinstance(kind, list):
        got = (value(rng, spin, kind[0], ru) for _ in range(kind[1]))
        return list(dict.fromkeys(got))
    fixed = {
        "bool": lambda: rng.random() < 0.6,
        "id": lambda: rng.choice((1, 1, 1, 2, 101, rng.randint(1, 999))),
        "date": lambda: (
            f"20{rng.randint(20, 25)}-{rng.randint(1, 12):02}-{rng.choice((1, 5, 10, 12, 15, 20, 25)):02}"
        ),
        "clock": lambda: f"{rng.randint(8, 20):02}:{rng.choice((0, 15, 30, 45)):02}",
        "price": lambda: (
            rng.choice((5, 10, 15, 20, 25, 40, 50, 99, 100, 120, 150, 200, 250, 300, 500))
            + rng.choice((0, 0, 0.5, 0.99))
        ),
        "rating": lambda: rng.choice((3.5, 4.0, 4.2, 4.5, 4.7, 4.8, 4.9, 5.0)),
        "big": lambda: rng.randint(2, 99) * rng.choice((1000, 10000, 100000)),
        "tens": lambda: rng.choice((10, 15, 20, 30, 40, 45, 60, 90, 120)),
        "zip": lambda: f"{rng.randint(10, 99)}000",
        "port": lambda: rng.choice((80, 443, 3000, 5432, 6379, 8000, 8080, 9000)),
        "host": lambda: rng.choice(("localhost", "127.0.0.1", "example.com", "db.example.com")),
        "version": lambda: f"{rng.randint(0, 3)}.{rng.randint(0, 9)}.{rng.randint(0, 5)}",
        "role": lambda: rng.choice(("admin", "user", "editor", "guest")),
        "currency": lambda: rng.choice(("EUR", "USD", "GBP", "RUB", "JPY")),
        "subject": lambda: rng.choice(
            ("математика", "физика", "история", "музыка")
            if ru
            else ("math", "physics", "history", "music", "art", "biology")
        ),
        "planet": lambda: rng.choice((ORDERED_RU["планеты"] if ru else PLANETS).split("|")),
        "login": lambda: spin("{anna|tom|mary|peter|lucy|jack|emma|sam}") + str(rng.randint(1, 99)),
        "model": lambda: f"{rng.choice('ABCDEFGX')}{rng.randint(1, 9)}",
        "person": lambda: spin("<ru_first> <ru_last>" if ru else "<first> <last>"),
    }
    if kind in fixed:
        return fixed[kind]()
    rule = f"ru_{kind}" if ru and f"ru_{kind}" in RULES else kind
    return spin(f"<{rule}>") if rule in RULES else "value"
