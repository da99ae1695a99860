//! The words that the rules use. The lists are short: each word must nearly always mean the same.
//!
//! rustfmt, which would put each word on its own line, leaves this file as it is.

/// Whole messages that need only a short reply.
pub(super) const GREETINGS: &[&str] = &[
    "bedankt", "boa noite", "boa tarde", "bom dia", "bon anniversaire", "bonsoir", "buenas", "congrats",
    "congratulations", "coucou", "fijne dag", "goedemorgen", "gute nacht", "guten abend", "happy birthday",
    "many thanks", "moin", "ty", "welcome", "hi", "hello", "hey", "yo", "good morning", "good evening",
    "good afternoon", "good night", "thanks", "thank you", "thx", "ok", "okay", "bye", "goodbye", "hallo",
    "guten morgen", "guten tag", "danke", "servus", "bonjour", "salut", "merci", "hola", "buenos dias", "buenos días",
    "gracias", "ciao", "buongiorno", "grazie", "olá", "obrigado", "obrigada", "привет", "спасибо", "你好", "谢谢", "こんにちは",
    "ありがとう", "안녕하세요", "مرحبا", "hej", "tack", "merhaba",
];

/// Filler words around a greeting, without apostrophes.
pub(super) const FILLERS: &[&str] = &[
    "a", "again", "ai", "all", "am", "amanhã", "anybody", "anyone", "are", "assistant", "até", "beaucoup", "best",
    "bien", "bientôt", "bist", "bot", "bye", "ca", "come", "da", "dank", "day", "de", "dear", "dir", "du", "e", "es",
    "estás", "evening", "everybody", "everyone", "for", "friend", "gehts", "good", "great", "had", "happy", "hello",
    "help", "helped", "helpful", "here", "hope", "how", "hows", "i", "is", "it", "l", "later", "lot", "lovely", "meet",
    "mille", "mondo", "morning", "much", "muchas", "mundo", "needed", "nice", "once", "perfect", "plein", "por", "pour",
    "qué", "schön", "see", "sehr", "so", "soon", "stai", "t", "tal", "team", "that", "thats", "the", "there", "this",
    "to", "today", "todo", "todos", "tous", "tout", "toute", "toutes", "très", "tutti", "va", "very", "viele", "vielen",
    "was", "we", "week", "weekend", "well", "welt", "went", "wie", "wonderful", "worked", "works", "world", "yesterday",
    "you", "your", "youre", "zusammen", "à", "ça", "équipe", "ございます", "你", "大家", "您",
];

/// Tasks that a glance at the text answers.
pub(super) const SMALL_TASKS: &[&str] = &[
    "classify", "categorize", "categorise", "sentiment", "label this", "label the", "yes or no", "true or false",
    "one word", "just the number", "extract", "how urgent", "is this spam", "which language", "what language",
    "capital of", "stand for", "synonym", "antonym", "plural of", "typo", "correct the spelling", "fix the spelling",
    "give me the email", "list the names", "how do you say", "title of", "how many letters", "pull out", "which of",
    "how many days", "who wrote", "who is", "when was",
];

/// Tasks with steps that build on each other.
pub(super) const HARD_TASKS: &[&str] = &[
    "prove", "proof", "theorem", "derive", "step by step", "step-by-step", "each step", "every step", "debug",
    "deadlock", "race condition", "refactor", "thread-safe", "lock-free", "time complexity", "linear time",
    "root cause", "trade-off", "tradeoff", "architecture of", "system design", "migration of", "perfect square",
    "probability that", "integer solutions", "puzzle", "riddle", "beweise", "schritt für schritt", "démontre",
    "étape par étape", "demuestra", "paso a paso", "докажи", "証明", "证明", "show that", "which is larger",
    "which is greater", "weighings", "zeige, dass", "montrez que", "montre que", "muestra que", "покажи, что", "lexer",
    "parser", "compiler", "algorithm", "data structure", "re-render",
];

/// Tasks to write or explain a text.
pub(super) const TEXT_TASKS: &[&str] = &[
    "explain", "describe", "summarize", "summarise", "summary", "key points", "rewrite", "rephrase", "write a",
    "write me", "draft", "essay", "a letter", "letter to", "letter of", "suggest", "ideas", "difference between",
    "paragraph", "names for", "advice", "packing list", "erkläre", "fasse", "schreibe", "explique", "résume", "explica",
    "resume", "escribe", "объясни", "напиши", "tips", "recommend", "advise", "turn these", "tl;dr",
];

/// Tasks to write code.
pub(super) const CODE_WORDS: &[&str] = &[
    "python", "javascript", "typescript", "rust", "c++", "java", "sql", "regex", "regular expression", "bash",
    "function", "failing test", "unit test", "script", "html", "css",
];

/// With code: tasks to understand code, not only write it.
pub(super) const REPAIRS: &[&str] = &[
    "bug", "fix", "why", "fail", "crash", "slow", "leak", "deadlock", "race", "optimi", "refactor", "wrong",
];

/// Formulas.
pub(super) const MATHS: &[&str] = &[
    "\\frac", "\\int", "\\sum", "\\sqrt", "∫", "∑", "√", "x^2", "n^2", "y^2", "mod ",
];

/// Signs of a word problem, in a text with several numbers.
pub(super) const SUMS: &[&str] = &[
    "how many", "how much", "how long", "how far", "how old", "at what", "when does", "when will", "wie viele",
    "wie lange", "combien", "cuántos",
];

/// Signs of a plan or comparison, in a text with several conditions.
pub(super) const CONDITIONED: &[&str] = &[
    "plan", "design", "schedule", "compare", "choose between", "optimal", "allocate",
];
pub(super) const CONDITIONS: &[&str] = &[
    "at most", "at least", "without", "budget", "no more than", "must", "constraint", "depend", "with at", "between",
    "include", "within",
];

/// Demands for a conclusion that has to hold: each counts twice in a guess.
pub(super) const DEMANDS: &[&str] = &[
    "analyse", "analyze", "contradict", "diagnose", "expected value", "find the flaw", "how likely", "inconsisten",
    "integral", "itinerary", "limit of", "migrate", "roadmap", "solve", "strategy for", "the odds", "work out",
    "justify", "show it", "show the", "show why", "argue", "argument", "refute", "disprove", "counterexample",
    "contre-exemple", "gegenbeispiel", "induction", "formalise", "formalize", "derivation", "find all", "find every",
    "for which", "shortest", "fewest", "smallest number", "minimal", "minimise", "minimize", "maximise", "maximize",
    "as few", "as early as", "worst case", "worst-case", "how many ways", "in how many", "in two ways",
    "is it possible", "critical path", "bottleneck", "what is wrong", "what's wrong", "what goes wrong",
    "what is going on", "can go wrong", "cause", "loophole", "in what order", "in which order", "each case",
    "every case", "list every", "scenario", "consequences of", "pay off", "who wins", "who owns", "who lies",
    "always lies", "tells the truth", "tell the truth", "lügt", "sudoku", "chess", "coins", "dominoes", "dominostein",
    "a balance", "jeden schritt", "complete scheme", "owes", "reconcile", "evaluate", "exactly why", "valid?",
    "restructure", "implement", "design", "schedule", "timetable", "montrer que", "démontrer", "justifie",
    "pourquoi exactement", "begründe", "zeig mir, warum", "und warum", "wie viele möglichkeiten", "demuestr",
    "justifica", "quante", "quanti", "calcola", "berechne", "rechnerisch", "calcule", "calcula", "conviene",
];

/// Terms of mathematics and of engineering; three at most count.
pub(super) const TECHNICAL: &[&str] = &[
    "algorithm", "api", "argument", "backoff", "binary", "cache", "callback", "clock skew", "cluster", "compil",
    "concurren", "consensus", "continuous", "converge", "cpu", "database", "datenbank", "deploy", "diagonal",
    "differentia", "dimension", "equation", "fraction", "fsync", "gleichung", "graph", "heap", "index", "integer",
    "kernel", "latency", "linear", "lock", "matrix", "memory", "million users", "mod", "mutex", "node", "nginx", "odd",
    "p95", "paradox", "partition", "password", "polynom", "postgres", "prime", "probabilit", "query", "queue",
    "quotient", "race", "raft", "random", "rational", "react", "recurs", "replica", "schema", "server", "session",
    "sort", "square", "stack trace", "tcp", "thread", "timeout", "triangle", "vector", "wahrscheinlichkeit", "équation",
];

/// Algebra and code in a line.
pub(super) const ALGEBRA: &[&str] = &[
    "f(x", "p(a", "o(n", "(x)", "(n)", "(a,", "x =", "x=", "n =", "n=", "==", "!=", "<=", ">=", "≤", "≥", "^", "8×8",
    "8x8", "i in ", "&&", "->", "();", "[i]",
];

/// More signs of conditions, for a guess.
pub(super) const LIMITS: &[&str] = &[
    "max.", "only", "exactly", "each ", "every ", "not more", "doesn't", "does not", "can't", "cannot", "never",
    "no two", "twice", "always", "if ", "unless", "minimum", "limit", "höchstens", "mindestens", "nur", "ohne", "wenn",
    "sauf", "seulement", "au plus", "si ", "solo", "máximo",
];

/// Requests for a text, for a guess.
pub(super) const COMPOSING: &[&str] = &[
    "apolog", "blog post", "caption", "invitation", "outline", "press release", "slogan", "tagline", "make this sound",
    "make it sound", "sound like us", "friendlier", "a bit shorter", "reply to", "answer to this", "message to",
    "message for", "email to", "e-mail to", "mail to", "poem", "verse", "story", "toast", "speech", "title and",
    "teaser", "name ideas", "names for", "tell me about", "tell my", "to say no", "help me say", "checklist",
    "facts about", "difference", "unterschied", "différence", "diferencia", "differenza", "pros and cons",
    "good way to", "rewrite", "reword", "turn this into", "turn my", "dinner", "recipe", "gift", "gedicht", "schreib",
    "formulier", "rückmeldung", "rédige", "écris", "écrire", "donne-moi", "propose", "scrivi", "scrivimi", "escreve",
    "escribe", "redacta",
];

/// How a question for a fact begins.
pub(super) const CLOSED_QUESTIONS: &[&str] = &[
    "is", "are", "does", "do", "did", "was", "were", "who", "when", "where", "which", "how many", "how much", "how old",
    "how tall", "what time", "what day", "what year", "what's the", "what is the", "what language", "ist", "sind",
    "wer", "wann", "wo", "welche", "welcher", "welches", "wie heißt", "wie viel", "wie viele", "was ist der",
    "was ist die", "was ist das", "est-ce", "qui", "quand", "où", "quel", "quelle", "combien", "es", "quién", "cuándo",
    "dónde", "cuál", "cuánto", "cuántos", "chi", "quando", "dove", "qual",
];

/// How an instruction begins that needs one look at a text.
pub(super) const LOOKS: &[&str] = &[
    "count", "find the", "spot", "put", "sort", "tag", "pick", "give only", "give me the", "give me just", "just",
    "only", "uppercase", "lowercase", "remove", "delete the", "convert", "fix the", "spell", "translate", "übersetze",
    "traduis", "traduce", "label", "list the", "mark", "underline", "repeat",
];

/// How a question for a reason or a way begins.
pub(super) const OPEN_QUESTIONS: &[&str] = &[
    "how do", "how does", "how can", "how could", "how would", "how should", "how to", "why", "what could",
    "what should", "what might", "what would", "what makes", "what happens", "wie funktioniert", "wie kann",
    "wie mache", "wieso", "weshalb", "warum", "pourquoi", "comment", "por qué", "cómo", "perché", "por que", "почему",
];

/// How a question for an idea begins that takes more than a word.
pub(super) const CONCEPTS: &[&str] = &[
    "what is a", "what is an", "what's a", "what are", "what's a good", "what's the story", "what do people",
    "in plain words", "was ist ein", "was ist eine", "was bedeutet", "was sind", "qu'est-ce", "qué es", "cos'è",
    "o que é",
];

/// Words of a user's own message, as opposed to a pasted text.
pub(super) const OWN_WORDS: &[&str] = &[
    "i ", "i'm", "my ", "we ", "our ", "ich ", "mein", "wir ", "je ", "mon ", "ma ",
];
