#!/bin/sh
# The English model, from raw articles: extract, annotate, prepare, train, pack. A step whose result exists is
# skipped, and a step that was stopped resumes when the script is started again.
#
#   DATA=data FRAMES=fndata-1.7 WORK=work sh pretrained/wiki-en/make.sh
#
# DATA    folder with articles, raw*.jsonl[.gz] (id, title, text); or, to begin there, with their events:
#         train*.jsonl[.gz], valid.jsonl[.gz] and test.jsonl[.gz]
# FRAMES  what annotates: FrameNet 1.7, a folder that `annotate --save` wrote, or a lexicon
# WORK    folder for everything that is made; RUN (WORK/run) and OUT (WORK/model) may be elsewhere
# The options of each step are those of the model in the package; ANNOTATE, PREPARE, TRAIN and PACK replace them.
set -eu
: "${DATA:?a folder with raw*.jsonl.gz, or with train*.jsonl.gz, valid.jsonl.gz and test.jsonl.gz}"
: "${FRAMES:?FrameNet, a saved annotator or a lexicon}"
WORK=${WORK:-work} SSDVAE=${SSDVAE:-ssdvae}
RUN=${RUN:-$WORK/run} OUT=${OUT:-$WORK/model}
ANNOTATE=${ANNOTATE-}
PREPARE=${PREPARE---events 24 --vocabulary 30000 --frames 800 --soft-labels}
TRAIN=${TRAIN---hidden 256 --embedding 128 --layers 1 --context-vector 64 --candidates 6 --sampled-words 1000 \
  --batch 100 --learning-rate 0.003 --observe 1 --epochs 1}
here=$(dirname "$0")
PACK=${PACK---about $here/about.md --license $here/LICENSE --tasks perplexity,frames,cloze,next,order,masked --cloze-seeds 1}
mkdir -p "$WORK"

if ! ls "$DATA"/train*.jsonl* >/dev/null 2>&1; then
  [ -e "$WORK/events/train.jsonl" ] || { mkdir -p "$WORK/events"; $SSDVAE extract "$DATA"/raw*.jsonl* --out "$WORK/events/train.jsonl"; }
  DATA=$WORK/events
fi

mkdir -p "$WORK/framed"
for file in "$DATA"/*.jsonl*; do
  name=$(basename "$file"); name=${name%%.jsonl*}
  case $name in train*|valid|test) ;; *) continue ;; esac
  [ -e "$WORK/framed/$name.jsonl" ] ||
    $SSDVAE annotate "$file" --frames "$FRAMES" --soft $ANNOTATE --out "$WORK/framed/$name.jsonl"
done

if [ ! -e "$WORK/corpus" ]; then
  cat "$WORK"/framed/train*.jsonl > "$WORK/train.jsonl"
  if [ -e "$WORK/framed/valid.jsonl" ]; then
    $SSDVAE prepare --train "$WORK/train.jsonl" --valid "$WORK/framed/valid.jsonl" --test "$WORK/framed/test.jsonl" \
      $PREPARE --out "$WORK/corpus"
  else
    $SSDVAE prepare "$WORK/train.jsonl" $PREPARE --out "$WORK/corpus"
  fi
  rm "$WORK/train.jsonl"
fi

if [ -e "$RUN" ]; then $SSDVAE train --resume "$RUN"; else $SSDVAE train "$WORK/corpus" --out "$RUN" $TRAIN; fi
$SSDVAE pack "$RUN" --out "$OUT" $PACK
