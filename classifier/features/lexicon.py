"""Words that say what is asked for, in several languages, mapped to a few dozen concepts.

Data only, and written by hand. `word*` is a prefix, anything else a whole word; a later entry never
overrides an earlier one. Concepts, not words, carry what is learned from one language to another.
"""

from __future__ import annotations

from typing import Final

CONCEPTS: Final[dict[str, str]] = {
    "CODE": """code codes coding snippet snippets one-liner oneliner function functions subroutine
        script scripts program programs class classes method methods regex regexp query queries
        stylesheet component components module endpoint endpoints api microservice cli parser
        pseudocode boilerplate unittest unittests decorator middleware codebase repo repository
        dockerfile makefile crontab cron webpage website app applet bot crawler scraper config
        код кода коду кодом коде скрипт* функци* программк* программу программа класс класса
        метод метода регулярк* регулярн* запрос запроса запросы сниппет* парсер* эндпоинт*
        микросервис* сайт сайта страничк* приложени* бот бота конфиг* утилит* модуль юнит-тест*
        юнит-тесты código funcion función funciones clase programa programas consulta
        skript funktion funktionen programm klasse abfrage fonction fonctions programme requête
        funzione codice função funkcj* kod kodu skrypt* fonksiyon* функці* програм* скрипту
        migration migrations pipeline wrapper plugin plugins formula formulas handler
        callback iterator singleton subclass testcase cronjob playbook deployment manifest
        декоратор* миграци* пайплайн* обёртк* плагин* формул* обработчик* генератор*
        скриптик* телеграм-бот* бинарн* dekorator decorador décorateur migración formel fórmula
        formule""",
    "CODEV": """implement implements refactor debug compile deploy parse optimise optimize
        vectorize transpile minify lint dockerize containerize scaffold autocomplete
        реализуй* реализовать реализация отрефактор* рефактор* отлад* скомпилир* запрограммир*
        закодь* накодь* напрогай имплемент* задеплой* распарс* implementa implementiere
        implementieren implémente implémenter implemente programmiere programma
        сверстай* сверстать залогируй* захардкодь* распарсить мокни напиши-код mock stub benchmark
        hardcode serialize deserialize memoize paginate throttle debounce""",
    "TECH": """python javascript typescript java kotlin scala rust golang c++ cpp c# csharp php ruby
        perl swift bash shell powershell sql sqlite mysql postgres postgresql mongodb redis html
        html5 css css3 scss svg react vue angular svelte nextjs nodejs node express django flask
        fastapi spring laravel rails pandas numpy pytorch tensorflow sklearn docker kubernetes
        terraform ansible nginx git github gitlab linux ubuntu unix windows regex graphql latex
        haskell elixir erlang clojure lua matlab fortran cobol assembly solidity excel vba jquery
        bootstrap tailwind webpack pytest junit selenium async await lambda dict tuple array arrays
        int string boolean linkedlist hashmap struct enum stdin stdout http https url json5 protobuf
        питон* пайтон* джаваскрипт* джава шарп* плюсах реакт* джанго линукс* баш докер* эксель*
        массив* строк* переменн* цикл* рекурси* указател*
        prolog lisp ocaml julia dart flutter swiftui jetpack android ios wordpress elasticsearch
        kafka rabbitmq celery airflow dbt spark hadoop bigquery clickhouse cassandra dynamodb
        supabase firebase aws s3 ec2 gcp azure heroku vercel netlify cloudflare helm prometheus
        grafana k8s kubectl systemd cronjob iptables ssh rsync grep awk sed jq curl wget ffmpeg
        imagemagick vim emacs tmux zsh cmake gradle maven npm yarn pnpm vite babel eslint jest
        mocha cypress playwright puppeteer scrapy beautifulsoup aiohttp asyncio pydantic
        sqlalchemy alembic prisma sequelize hibernate websocket websockets grpc oauth jwt openapi
        swagger webhook webhooks canvas webgl threejs d3 pygame tkinter qt unity godot arduino
        esp32 grok logstash bfs dfs dijkstra quicksort mergesort memoization iterator mutex
        goroutine goroutines coroutine coroutines localstorage div dom iframe uuid base64 utf-8
        ascii nullable varchar вебсокет* постгрес* кубернетес* докерфайл* фронтенд* бэкенд*
        бекенд* тайпскрипт* флаттер* андроид* редис* кафк* айфрейм* асинхронн* многопоточн*""",
    "JSON": """json jsonl yaml yml xml toml schema schemas ini key-value keys fields json-object
        джсон* жсон* ямл* схем* ключ ключи ключами ключей поля полями полей schlüssel felder clés
        champs campos claves
        key-values objects payload пейлоад*""",
    "TABLE": """table tables tabular csv tsv spreadsheet column columns rows таблиц* табличк*
        табличн* столбец столбц* колонк* tabla tablas columnas tabelle spalten tableau colonnes
        tabella colonne tabela colunas tabel* tablo таблиц* стовпц* comparison-table""",
    "LIST": """bullet bullets bulleted numbered checklist list lists listing comma-separated
        список списка списком списки списке перечень перечня пункт пункта пункты пунктам пунктов
        пунктами чеклист* чек-лист* нумерованн* маркированн* lista listas liste listen listado
        aufzählung stichpunkt* puces elenco список* wypunktuj listę listele liste-à-puces""",
    "LISTV": """enumerate перечисли* перечислите назови назовите выпиши* выпишите перечислить
        enumera enumere nenne nennen énumère cite citez elenca wymień перелічи* назвіть say*""",
    "ITEMS": """names name titles title ideas examples example items emails phones dates entities
        keywords keyword tags hashtags synonyms antonyms headings ingredients steps tips options
        reasons ways things facts questions usernames slogans headlines имена имён имен названи*
        иде* идей примеры примеров дат даты телефон* почт* сущност* ключев* тег* хэштег* синоним*
        антоним* заголовк* ингредиент* советов способ* вариант* фактов вопросов причин nombres
        ejemplos ideen beispiele namen noms exemples idées nomi esempi idee
        headline surnames verbs nouns adjectives countries capitals states cities planets digits
        letters quiz questionnaire characters-list фамили* глагол* существительн* прилагательн*
        столиц* викторин* хештег* слоган* titulares títulos verbos überschriften titel verben
        titres verbes noms-propres states-list ideas-list preguntas fragen""",
    "EXTRACT": """extract extracts pull parse-out identify detect spot retrieve извлеки* извлечь
        вытащи* выдели* вычлени* достань extrae extraiga extrahiere extrahieren extrais extrayez
        estrai extraia wyodrębnij витягни* exzerpier*""",
    "CLASSIFY": """classify categorize categorise label labels sentiment category categories
        positive negative neutral spam intent topic true false классифицир* категори*
        тональност* позитив* негатив* нейтрал* метк* определи* определите отнеси clasifica
        klassifiziere stimmung classifie classez sentimiento classifica classifique""",
    "COUNT": """count counting tally tallies посчитай* сосчитай* подсчитай* пересчитай* cuenta
        zähle zählen compte comptez conta conte policz порахуй*""",
    "SORT": """sort sorted sorting alphabetically alphabetical ascending descending rank order
        filter group dedupe deduplicate reorder отсортируй* сортир* упорядоч* алфавит* возрастани*
        убывани* ранжир* отфильтр* сгруппир* ordena sortiere trie triez ordina ordene""",
    "CONVERT": """convert transform turn reformat format formatted reshape port migrate encode
        decode
        преобразу* конвертир* переформат* оформи* превра* отформат* переделай* перегони convierte
        konvertiere wandle convertis convertissez converti converta""",
    "TRANSLATE": """translate translates translation translated translator переведи* переведите
        перевод перевода переводчик* перекласт* переклади* traduce traduzca traducir traducción
        übersetze übersetzen übersetzung traduis traduisez traduire traduction traduci traduza
        przetłumacz çevir перевести""",
    "LANG": """english french german spanish russian chinese italian portuguese japanese korean
        arabic turkish polish ukrainian hindi latin dutch swedish английск* французск* немецк*
        испанск* русск* китайск* итальянск* японск* корейск* украинск* турецк* польск* inglés
        español francés alemán englisch deutsch französisch anglais espagnol inglese inglês""",
    "SUMMARISE": """summarize summarise summary summaries tldr tl;dr recap condense abridge gist
        abstract outline-briefly synopsis резюмир* суммир* суммаризир* саммари перескаж* конспект*
        сократи* вкратце выжимк* краткое кратко подытож* resume resuma resumen zusammenfass*
        fasse résume résumez résumé riassumi riassunto resumo streść özetle підсумуй*""",
    "REWRITE": """rewrite rephrase paraphrase reword proofread polish edit revise improve shorten
        simplify grammar spelling punctuation перепиши* переписать перефразир* отредактир* вычитай
        улучши* улучшить исправь* грамматик* ошибки ошибок орфограф* стилистик* переформулир*
        reescribe reformula umformulier* schreibe-um réécris reformule riscrivi reescreva corrige
        corrigez korrigiere""",
    "FIX": """fix fixes fixed bug bugs bugfix error errors exception traceback typo broken crash
        crashes почини* баг бага баги ошибка ошибку ошибк* исключени* падает сломал* глюк*
        arregla behebe fehler corriger erreur""",
    "TRANSFORM": """add remove rename replace change update modify insert delete append extend
        добавь* убери* удали* замени* измени* поменяй* переименуй* вставь* обнови* дополни*
        añade agrega quita cambia füge ändere entferne ajoute supprime remplace aggiungi""",
    "WRITE": """write writes writing compose draft author pen script-writing напиши* написать
        напишите пиши сочини* сочините составь* составьте накатай набросай* escribe escribir
        escriba redacta schreib schreibe schreiben verfasse écris écrivez rédige rédigez scrivi
        escreva redija napisz yaz напишіть склади""",
    "MAKE": """make makes create creates generate build produce design develop prepare give provide
        show создай* создайте сделай* сделайте сгенерир* подготов* построй* разработ* дай дайте
        приведи* покажи* сформируй* придумай* придумайте предложи* crea genera haz dame muestra
        erstelle erstellen generiere gib zeige crée créez génère donne donnez fais crea dammi crie
        gere faça stwórz podaj oluştur ver створи* зроби*""",
    "EXPLAIN": """explain explains explanation describe describes discuss elaborate clarify
        illustrate analyze analyse interpret объясни* объясните поясни* опиши* опишите обсуди*
        растолк* разъясни* проанализир* разбери* прокоммент* explica explique describe erkläre
        erklären beschreibe explique expliquez décris décrivez spiega descrivi descreva wyjaśnij
        opisz açıkla поясніть опиши""",
    "TELL": """tell talk chat speak say share расскажи* расскажите поговори* поболта* поделись
        поддержи* скажи* cuéntame habla háblame erzähl erzähle raconte parle parlez raccontami
        conte fale opowiedz anlat розкажи*""",
    "STORY": """story stories tale tales poem poems poetry haiku song lyrics novel fable limerick
        joke jokes sonnet ballad fairytale chapter scene monologue dialogue screenplay verse rhyme
        fanfic plot fiction рассказ рассказа рассказик сказк* стих* песн* басн* хайку анекдот*
        шутк* роман романа поэм* повест* сценк* сценари* монолог* диалог* четверостиш* сонет*
        легенд* притч* сюжет* главу cuento historia poema canción novela geschichte gedicht märchen
        lied histoire conte poème chanson storia poesia racconto história opowiadanie wiersz hikaye
        şiir оповідання казк* вірш*""",
    "ESSAY": """essay essays article blog post paragraph paragraphs letter email e-mail mail speech
        review report biography bio introduction conclusion ad advert advertisement slogan
        description memo newsletter press cover toast eulogy caption column-piece manifesto prologue
        thesis sermon эссе статья статью статьи сочинени* письмо письма письмецо пост поста абзац
        абзаца абзацем абзацев отзыв* доклад* речь речи обзор* реклам* биограф* введени* вступлени*
        заключени* описани* поздравлен* тост тоста заметк* рецензи* реферат* очерк* ensayo artículo
        carta correo párrafo discurso aufsatz artikel brief absatz rede beitrag rédaction lettre
        paragraphe discours saggio articolo lettera discorso ensaio carta artigo rozprawk* list-do
        mektup makale лист твір
        column op-ed testimonial obituary blurb resignation recommendation pitch колонк* некролог*
        презентаци* пресс-релиз* резюме-письмо""",
    "ROLE": """act pretend roleplay role-play role-playing imagine persona character impersonate
        stay-in-character представь* притвор* роль роли сыграй* вообраз* персонаж* образе actúa
        imagina finge stell spiele-die-rolle imagine joue agis immagina fingi wciel уяви*""",
    "STYLE": """style tone voice persona-of manner humorous witty whimsical poetic formal casual
        friendly dramatic heartfelt persuasive tonality стиле стиль тоне тон манере юмор* душевн*
        дружелюбн* официальн* поэтичн* estilo tono stil ton style""",
    "ADVICE": """advice advise recommend recommendation suggest suggestion should help worth better
        посовет* рекоменд* порекоменд* совет стоит лучше помоги* помогите нужно consejo recomienda
        recomendación debería rat empfiehl empfehl* soll sollte conseil conseille dois devrais
        consigli* conselho devo porad* tavsiye пораджте порад*""",
    "FEEL": """feel feeling feelings sad happy tired love lonely anxious scared worried upset angry
        bored stressed mood thanks thank hello hi hey goodbye bye lol haha sorry morning привет*
        здравствуй* спасибо благодар* грустно устал* тоск* одинок* страшно люблю переживаю боюсь
        скучно настроени* пока хаха лол обидно обид* hola gracias triste hallo danke traurig müde
        bonjour merci ciao grazie olá obrigado cześć dzięki merhaba teşekkür* дякую привіт""",
    "WHY": """why reason because cause causes почему зачем отчего причина причину причины warum
        wieso
        pourquoi perché dlaczego neden чому porqué""",
    "WHAT": """what whats what's which who whom whose where when что чего какой какая какое какие
        каком какую кто где когда чем qué quién cuál dónde cuándo was welche welcher wer wo wann
        quoi
        quel quelle qui où quand cosa quale chi dove qual quem onde quando kim ne nerede що який яка
        хто де коли co jaki kto gdzie kiedy""",
    "HOW": """how как каким cómo wie comment come como jak nasıl як""",
    "MANY": """many much сколько скольк* cuántos cuántas cuánto cuánta wieviel wieviele viele
        combien
        quanti quante quanto quantos quantas ile kaç скільки""",
    "COMPARE": """compare comparison contrast difference differences differ versus vs pros cons
        advantages disadvantages benefits drawbacks сравни* сравнить сравнение разниц* отлича*
        отличи* плюсы минусы преимуществ* недостатк* против compara diferencia vergleiche
        unterschied vorteile nachteile compare différence confronta differenza diferença porównaj
        różnic* порівняй* різниц*""",
    "OPINION": """opinion believe argue argument debate perspective agree view thoughts ethical
        moral мнени* считаешь аргумент* спор взгляд* согласен этичн* мораль* opinas opinión meinung
        denkst penses avis pensi opinião""",
    "ABOUT": """about whether regarding concerning про насчёт насчет касательно über sobre acerca
        concernant riguardo""",
    "PERSON": """programmer developer engineer scientist teacher nurse doctor boss manager colleague
        coworker brother sister mother mom mum father dad son daughter wife husband friend friends
        neighbour neighbor landlord grandmother grandma grandpa kid kids child children
        программист* разработчик* инженер* учител* врач* начальник* коллег* брат брата брату сестр*
        мама маме мамой папа папе отец отцу сын сыну дочь дочери жена жене муж мужу друг друга другу
        подруг* сосед* бабушк* дедушк* дети детям ребён* ребенок ребенк* hermano hermana madre padre
        hijo amigo amiga jefe bruder schwester mutter vater freund freundin chef kollege frère
        sœur mère père ami amie patron collègue""",
    "SOLVE": """solve solving calculate compute evaluate integrate differentiate derive prove proof
        factorize determine verify estimate реши решите решить решение вычисли* вычислите рассчита*
        найдите докажи* докажите доказать упрости* разложи* выведи-формулу resuelve calcula halla
        demuestra löse berechne beweise résous résoudre calculez calcule démontre risolvi calcola
        dimostra resolva rozwiąż oblicz udowodnij çöz hesapla розв'яжи обчисли*""",
    "FIND": """find search look lookup найди* отыщи* поищи* разыщи* encuentra busca finde suche
        trouve cherche trova cerca encontre znajdź bul знайди*""",
    "MATH": """equation equations integral derivative derivatives probability sum product root roots
        polynomial matrix determinant eigenvalue triangle angle area perimeter volume radius
        diameter circumference percent percentage ratio fraction average mean median speed velocity
        prime divisible divisor remainder digit digits integer integers number numbers arithmetic
        geometric sequence logarithm log exponent quadratic vector modulo gcd lcm factorial
        combination combinations permutation permutations cube square squared theorem inequality
        limit converge interest arithmetic-progression уравнени* интеграл* производн* вероятност*
        сумма сумму суммы произведени* корень корни корней многочлен* матриц* определитель
        треугольник* прямоугольник* окружност* угол угла углы площад* периметр* объём объем радиус*
        диаметр* процент* дробь дроби среднее скорост* расстояни* простых делител* делится остаток
        цифр* число числа чисел прогресси* логарифм* квадрат* куб вектор* факториал* теорем*
        неравенств* предел множител* ecuación probabilidad suma raíz triángulo área velocidad
        gleichung wahrscheinlichkeit summe wurzel dreieck fläche geschwindigkeit équation
        probabilité somme racine aire vitesse equazione probabilità somma equação soma""",
    "COMPARATIVE": """taller shorter older younger faster slower heavier lighter richer poorer
        cheaper oldest youngest tallest shortest fastest slowest heaviest lightest
        выше ниже старше младше
        быстрее медленнее тяжелее легче левее правее богаче беднее дороже дешевле самый самая mayor
        menor alto alta bajo älter jünger größer kleiner grand grande petit petite giovane vecchio
        alto velho novo wyższy niższy starszy młodszy uzun kısa вищий нижчий""",
    "UNIT": """km kmph mph meters metres miles feet inches hours hour minutes minute seconds days
        weeks months years dollars dollar cents euros pounds kg grams liters litres gallons km/h
        pages apples pieces км метр* час часа часов минут* секунд* день дня дней недел* рублей рубля
        рубль руб кг грамм* литр* лет яблок* кусок страниц* штук* euro horas minutos días kilómetros
        stunden minuten tage kilometer heures minutes jours kilomètres ore minuti giorni""",
    "QUANT": """each every total left remaining twice half altogether per more less fewer than times
        share equally another rest spent spends spend sold sells sell bought buys costs cost price
        pays paid earns earn gave gives remain together double triple older younger taller faster
        кажд* всего осталось остал* вдвое втрое половин* поровну дороже дешевле старше младше
        быстрее вместе купил* потратил* продал* отдал* стоил* заработ* цена цену раздал* съел*
        прочита* проехал* прошел прошёл cada total quedan mitad doble jeder insgesamt übrig hälfte
        chaque reste moitié ciascuno metà totale cada-um resta""",
    "LOGIC": """puzzle riddle riddles liar liars lies lying truthful knight knights knave knaves
        deduce infer implies syllogism premise premises clue clues logic logical logically
        contradiction consistent constraint constraints seated sits sit guilty suspect valid
        necessarily paradox weighings загадк* головоломк* логик* логич* лжец* лжёт врёт врет правду
        рыцар* посылк* следует вывод противореч* подозрева* виноват* верно взвешивани* переправ*
        acertijo lógica mentiroso rätsel logik lügner énigme logique menteur indovinello enigma""",
    "NUM": """two three four five six seven eight nine ten eleven twelve fifteen twenty thirty fifty
        hundred thousand dozen half-dozen два две двое три трое четыре пять шесть семь восемь девять
        десять двенадцать пятнадцать двадцать тридцать пятьдесят сто тысяч* dos tres cuatro cinco
        seis diez zwei drei vier fünf zehn deux trois quatre cinq dix due tre quattro cinque dois
        três quatro dwa trzy cztery""",
    "STEP": """step stepwise step-by-step шаг шаги шагам шагом пошагово поэтапно paso pasos schritt
        schritte étape étapes passo passi krok adım крок""",
    "THINK": """think thinking reasoning rationale justify deliberate ponder workings подума* думай
        рассужд* рассуди* обоснуй* обоснов* размышл* поразмысл* piensa razona denke überlege
        begründe réfléchis raisonne pensa ragiona pense raciocine""",
    "PLAN": """plan plans planning strategy roadmap itinerary schedule timetable budget agenda
        syllabus workout curriculum план плана план-график распиши* расписани* маршрут* стратеги*
        график* бюджет* программу-тренировок plan-de presupuesto zeitplan planning piano
        cronograma""",
    "DOC": """document text passage following above below given context excerpt transcript page
        paper abstract sentence input content документ* текст текста тексте тексту отрыв* следующ*
        ниже выше данн* контекст* стенограмм* предложение предложении texto siguiente documento
        dokument folgenden texte suivant document testo seguente poniższ* metin""",
    "ONLY": """only just nothing solely strictly exactly raw merely plain valid-only только лишь
        исключительно строго ничего просто ровно solo solamente únicamente nur ausschließlich
        seulement uniquement soltanto apenas somente tylko sadece лише тільки""",
    "NEG": """no nein not don dont without never avoid nor isn doesn cannot не без нет
        никак* нельзя избегай sin nunca kein keine nicht ohne pas sans jamais non senza não sem nie
        bez değil ні""",
    "OUTPUT": """output outputs return returns respond response reply answer answers print emit
        выведи* вывод вывести верни* вернуть ответь* отвечай* ответ ответа распечатай* responde
        respuesta devuelve antworte antwort ausgabe réponds répondez réponse rispondi risposta
        responda resposta odpowiedz cevap відповід*""",
    "FORMAT": """format markdown form structure structured layout template separated delimited fence
        block формат* формате виде структур* шаблон* разделител* запятую запятые формате-json
        formato format-de forme""",
    "LENGTH": """words word sentences lines characters слов слова предложени* строк-текста символов
        palabras frases wörter sätze mots phrases parole frasi palavras słów
        слово словом wort palabra mot parola""",
    "BRIEF": """brief briefly short concise concisely quick quickly одним коротк* лаконич* сжато
        breve corto kurz bref court curto krótk*""",
    "DETAIL": """detailed detail details thorough comprehensive depth long in-depth extensive
        подробн* детальн* развёрнут* развернут* обстоятельн* detallad* ausführlich détaillé*
        dettagliat* detalhad*""",
    "REF": """it this that these those them same previous former latter its there это этот эту эти
        этого этом этой то тот того их его её ней нём тоже предыдущ* такой eso esto lo das es dies
        ça
        cela le ciò questo isso""",
    "NOW": """now instead then also again next continue another теперь тогда ещё еще дальше
        продолжи*
        продолжай заново снова ahora jetzt maintenant ora agora teraz тепер""",
    "ACTION": """send book remind call open play start stop run cancel order buy check fetch get set
        schedule-a post upload download email-to notify subscribe track отправь* забронир* напомни*
        позвони* открой* включи* выключи* запусти* останови* закажи* купи проверь* скачай* загрузи*
        поставь* запиши* создай-событие envía reserva abre sende buche öffne envoie réserve ouvre
        invia prenota apri envie""",
    "WORLD": """weather flight flights hotel restaurant calendar meeting appointment alarm timer
        reminder ticket news stock stocks currency route directions погод* рейс* отель гостиниц*
        ресторан* календар* встреч* будильник* таймер* билет* новост* курс акци* маршрут""",
    "YOU": """you your yourself ты вы тебя тебе тобой вас вам твой твоя ваш tú usted tu du sie ihr
        vous toi lei você""",
    "ME": """i me my mine i'm im i've я мне меня мной мой моя моё мои yo mí mi ich mir mein je moi
        mon
        ma io mio eu meu minha""",
}
"""Concept to its words."""

ZH_CONCEPTS: Final[dict[str, str]] = {
    "CODE": "代码 函数 脚本 程序 正则 接口 网页 类 コード 関数 코드 함수 爬虫 组件 单元测试",
    "CODEV": "实现 重构 调试 编程 编写程序 実装 구현",
    "JSON": "字段 键 键值 スキーマ",
    "TABLE": "表格 列表头 一张表 表で 表形式 표로 对比表 两列 三列",
    "LIST": "列表 清单 列出 列举 要点 项目符号 条目 逐条 箇条書き リスト 목록",
    "ITEMS": "名字 名称 标题 例子 关键词 标签 同义词 点子 名前 例",
    "EXTRACT": "提取 抽取 找出 抽出 추출 识别",
    "CLASSIFY": "分类 情感 判断类别 正面 负面 中性 类别",
    "COUNT": "数一数 计数 数到 一共有几 数えて",
    "SORT": "排序 排列 升序 降序 按字母",
    "CONVERT": "转换 转成 改成 变成 转为 格式化 変換 변환",
    "TRANSLATE": "翻译 译成 译为 翻訳 번역",
    "LANG": "英文 英语 中文 法语 法文 德语 日语 西班牙语 俄语 韩语",
    "SUMMARISE": "总结 概括 摘要 概述 归纳 要約 요약 简述",
    "REWRITE": "改写 润色 重写 修改 校对 纠正 語句 书き直 高쳐",
    "FIX": "修复 报错 错误 修正 bug 修好",
    "TRANSFORM": "添加 删除 替换 加上 去掉 改名",
    "WRITE": "写 撰写 编写 创作 書いて 써줘 작성",
    "MAKE": "生成 创建 制作 设计 给我 给出 作って 만들어 提供",
    "EXPLAIN": "解释 说明 描述 介绍 讲解 阐述 分析 説明 설명 谈谈",
    "TELL": "告诉我 聊聊 讲讲 说说 陪我 教えて 話して",
    "STORY": "故事 诗 小说 童话 歌词 笑话 寓言 俳句 剧本 物語 이야기",
    "ESSAY": "祝酒词 致辞 文案 文章 作文 邮件 信 博客 演讲 段落 报告 评论 广告 简介 短文 散文",
    "ROLE": "扮演 假装 假设你 想象 你是一个 你是一名 角色 作为一名 作为一个",
    "STYLE": "风格 语气 口吻 幽默 文风",
    "ADVICE": "建议 推荐 应该 怎么办 该不该 值得 アドバイス おすすめ 추천",
    "FEEL": "你好 谢谢 难过 开心 累 孤独 害怕 こんにちは ありがとう 안녕",
    "WHY": "为什么 为何 原因 なぜ 왜",
    "WHAT": "什么 哪个 哪里 谁 何时 哪些 何 무엇",
    "HOW": "怎么 如何 怎样 どう 어떻게",
    "MANY": "多少 几个 几只 几天 几岁 多久 いくつ 몇",
    "COMPARE": "比较 对比 区别 不同 优缺点 差异 違い 비교",
    "OPINION": "看法 观点 认为 觉得 意見",
    "ABOUT": "关于 について",
    "PERSON": "程序员 哥哥 姐姐 弟弟 妹妹 妈妈 爸爸 朋友 同事 老板 老师 医生 孩子",
    "SOLVE": "求解 计算 解方程 证明 求 算出 算一算 解いて 計算 계산 풀어",
    "MATH": "方程 积分 导数 概率 面积 体积 三角形 平方 质数 百分 数列 矩阵 根号 角度 余数 方程式",
    "UNIT": "公里 千米 小时 分钟 元 公斤 千克 厘米 米 升 岁 天 块钱",
    "QUANT": "每个 每天 一共 剩下 还剩 总共 一半 平均 多出 两倍 相等 分给",
    "LOGIC": "谜题 逻辑 推理 说谎 真话 假话 骑士 推断 谜语 パズル 论理",
    "STEP": "一步一步 步骤 逐步 一步步 ステップ",
    "THINK": "思考 想一想 推导 理由 考えて",
    "PLAN": "计划 规划 日程 方案 行程 预算 計画",
    "DOC": "以下 下面 上文 文本 文档 这段 原文 次の 本文 다음",
    "ONLY": "只 仅 仅仅 だけ 만",
    "COMPARATIVE": "比小 比他 比她 更高 更大 最高 最矮 最大 最小 年龄 より",
    "NEG": "不要 不用 没有 无需 别 なし 없이",
    "OUTPUT": "输出 返回 回答 回复 出力 출력 返信",
    "FORMAT": "格式 形式 模板 分隔 逗号",
    "LENGTH": "个字 字以内 句话 字左右 文字",
    "BRIEF": "简短 简洁 简要",
    "DETAIL": "详细 深入 全面",
    "REF": "这个 那个 它 上面 刚才 前面",
    "NOW": "现在 接着 继续 再 还有",
    "ACTION": "发送 预订 提醒 打开 播放 查询 查一下 帮我订 搜索",
    "WORLD": "天气 航班 酒店 餐厅 日历 会议 闹钟 新闻 股票",
}
"""The same for scripts without spaces: substrings, longest first."""

STOP_WORDS: Final[dict[str, frozenset[str]]] = {
    "en": frozenset(
        [
            "the",
            "a",
            "an",
            "of",
            "to",
            "and",
            "is",
            "are",
            "in",
            "for",
            "with",
            "on",
            "that",
            "it",
            "you",
            "me",
            "my",
            "what",
            "how",
        ]
    ),
    "other": frozenset(
        [
            "el",
            "la",
            "los",
            "las",
            "de",
            "que",
            "y",
            "en",
            "un",
            "una",
            "por",
            "con",
            "para",
            "del",
            "se",
            "lo",
            "como",
            "più",
            "der",
            "die",
            "das",
            "und",
            "ist",
            "ein",
            "eine",
            "mit",
            "für",
            "von",
            "den",
            "dem",
            "auf",
            "nicht",
            "le",
            "les",
            "des",
            "et",
            "est",
            "une",
            "dans",
            "pour",
            "avec",
            "du",
            "je",
            "vous",
            "il",
            "di",
            "che",
            "per",
            "sono",
            "gli",
            "della",
            "não",
            "uma",
            "os",
            "ao",
            "em",
            "com",
            "você",
            "w",
            "na",
            "się",
            "jest",
            "ve",
            "bir",
            "bu",
            "için",
            "та",
            "що",
            "як",
            "для",
            "від",
            "і",
            "це",
        ]
    ),
}
"""The commonest words; the set with more hits names the language group of a Latin-script text."""
