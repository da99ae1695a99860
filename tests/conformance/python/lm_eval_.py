"""lm-eval with a task of our own, through `/v1/completions` and `/v1/chat/completions`.

Each choice is one token, so that its score can be had in another way: from the log probabilities of the first token that the
model would generate after the same prompt.
"""

import shutil
import tempfile
import urllib.request
from pathlib import Path

os_environ = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

import os  # noqa: E402

os.environ |= os_environ

import lm_eval  # noqa: E402
from cells import *  # noqa: E402, F403
from lm_eval.tasks import TaskManager  # noqa: E402

QUESTIONS = [
    {"prompt": "The opposite of hot is", "choices": [" cold", " the"], "right": 0},
    {"prompt": "One, two, three,", "choices": [" five", " four"], "right": 1},
    {"prompt": "The sky on a clear day is", "choices": [" blue", " a"], "right": 0},
    {"prompt": "Monday, Tuesday,", "choices": [" Friday", " Wednesday"], "right": 1},
]
TOLERANCE = 0.02
folder = Path(tempfile.mkdtemp())
(folder / "questions.json").write_text("\n".join(json.dumps(each) for each in QUESTIONS))
COMMON = {
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": str(folder / "questions.json")}, "cache_dir": str(folder / "cache")},
    "test_split": "test",
    "doc_to_text": "{{prompt}}",
    "target_delimiter": "",
}
CHOICES = {"task": "ours_choices", "output_type": "multiple_choice", "doc_to_choice": "choices", "doc_to_target": "right"}
CHOICES["metric_list"] = [{"metric": "acc"}]
GENERATED = {"task": "ours_generated", "output_type": "generate_until", "doc_to_target": "{{choices[right]}}"}
GENERATED |= {"generation_kwargs": {"until": ["\n"], "max_gen_toks": 8, "do_sample": False}, "metric_list": [{"metric": "exact_match"}]}
ROLLING = {"task": "ours_rolling", "output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{prompt}}"}
ROLLING["metric_list"] = [{"metric": "byte_perplexity"}]


def evaluate(task, tier, kind, path, **more):
    arguments = {"model": tier, "base_url": f"{V1}/{path}", "num_concurrent": 1, "max_retries": 1, "timeout": SECONDS, **more}
    tokens = {"tokenizer_backend": "huggingface", "tokenizer": os.environ["TIERBAR_TOKENIZER"], "tokenized_requests": False}
    found = lm_eval.simple_evaluate(
        model=kind,
        model_args=arguments | tokens,
        tasks=[{**COMMON, **task}],
        task_manager=TaskManager(include_defaults=False),
        apply_chat_template=kind == "local-chat-completions",
        bootstrap_iters=0,
    )
    return found["samples"][task["task"]]


def generated(tier):
    return [sample["resps"][0][0] for sample in evaluate(GENERATED, tier, "local-completions", "completions")]


def chat(tier):
    return [sample["resps"][0][0] for sample in evaluate(GENERATED, tier, "local-chat-completions", "chat/completions")]


def choices(tier):
    """Each score beside the direct one, as far as that is among the first token's twenty."""
    pairs = []
    for sample in evaluate(CHOICES, tier, "local-completions", "completions"):
        first = first_token(tier, sample["doc"]["prompt"])
        for choice, [(score, _greedy)] in zip(sample["doc"]["choices"], sample["resps"], strict=True):
            if choice in first:
                pairs.append((choice, float(score), first[choice]))
    return pairs


def first_token(tier, prompt):
    asked = {"model": tier, "prompt": prompt, "max_tokens": 1, "logprobs": 20, "temperature": 0}
    request = urllib.request.Request(f"{V1}/completions", json.dumps(asked).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return json.load(answer)["choices"][0]["logprobs"]["top_logprobs"][0]


def rolling(tier):
    return [sample["resps"][0][0] for sample in evaluate(ROLLING, tier, "local-completions", "completions")]


def check_texts(texts):
    check(len(texts) == len(QUESTIONS) and any(text.strip() for text in texts), f"{texts!r}")


def check_pairs(pairs):
    check(len(pairs) >= len(QUESTIONS), f"only {len(pairs)} could be compared")
    for choice, score, direct in pairs:
        check(abs(score - direct) <= TOLERANCE, f"{choice!r} scores {score:.3f}, and its first token {direct:.3f}")


def check_scores(scores):
    check(len(scores) == len(QUESTIONS) and all(float(score) < -1 for score in scores), f"{scores!r}")


TIERS = {"generated": [PLAIN], "chat": [PLAIN], "choices": [PLAIN], "rolling": [PLAIN]}
try:
    run("lm-eval", TIERS, {"generated": check_texts, "chat": check_texts, "choices": check_pairs, "rolling": check_scores})
finally:
    shutil.rmtree(folder)
