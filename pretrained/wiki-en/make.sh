#!/bin/sh
# The English model, from raw articles: extract, annotate, prepare, train, pack. A step whose result exists is
# skipped, and a step that was stopped resumes when the script is started again.
#
#   DATA=data FRAMES=fndata-1.7 WORK=work sh pretrained/wiki-en/make.sh
#
# DATA      folder with articles, raw*.jsonl[.gz] (id, title, text); or, to begin there, with their events:
#           train*.jsonl[.gz], valid.jsonl[.gz] and test.jsonl[.gz]. Stories in plots*.jsonl[.gz] (id, text) are
#           trained on too, three times: articles say little of everyday events.
# FRAMES    what annotates: FrameNet 1.7, a folder that `annotate --save` wrote, or a lexicon
# FRAMENET  FrameNet 1.7, whose definitions the explorer shows; by default FRAMES, if that is FrameNet
# MEND      set it if the events are of the version that wrote no complements: complete.py mends them, and
#           keeps the first MEND events of each article
# WORK      folder for everything that is made; RUN (WORK/run) and OUT (WORK/wiki-en) may be elsewhere
# The options of each step are those of the model in the package; ANNOTATE, PREPARE, TRAIN and PACK replace them.
set -eu
: "${DATA:?a folder with raw*.jsonl.gz, or with train*.jsonl.gz, valid.jsonl.gz and test.jsonl.gz}"
: "${FRAMES:?FrameNet, a saved annotator or a lexicon}"
WORK=${WORK:-work} SSDVAE=${SSDVAE:-ssdvae}
RUN=${RUN:-$WORK/run} OUT=${OUT:-$WORK/wiki-en}
ANNOTATE=${ANNOTATE---encoder minilm}
PREPARE=${PREPARE---vocabulary 30000 --frames 800 --soft-labels}
TRAIN=${TRAIN---hidden 384 --embedding 128 --layers 1 --context-vector 64 --candidates 6 --sampled-words 1000 \
  --window 12 --stride 12 --batch 100 --learning-rate 0.0025 --observe 1 --epochs 2}
FRAMENET=${FRAMENET-$([ ! -e "$FRAMES/frameIndex.xml" ] || echo "$FRAMES")}
here=$(dirname "$0")
PACK=${PACK---about $here/about.md --license $here/LICENSE --tasks perplexity,frames,cloze,next,order,masked --cloze-seeds 1}
mkdir -p "$WORK"

for file in "$DATA"/plots*.jsonl*; do
  [ ! -e "$file" ] || [ -e "$WORK/plots.jsonl" ] || $SSDVAE extract "$DATA"/plots*.jsonl* --out "$WORK/plots.jsonl"
done

if ! ls "$DATA"/train*.jsonl* >/dev/null 2>&1; then
  [ -e "$WORK/events/train.jsonl" ] || { mkdir -p "$WORK/events"; $SSDVAE extract "$DATA"/raw*.jsonl* --out "$WORK/events/train.jsonl"; }
  DATA=$WORK/events
fi

if [ -n "${MEND-}" ]; then
  mkdir -p "$WORK/mended"
  for file in "$DATA"/train*.jsonl* "$DATA"/valid.jsonl* "$DATA"/test.jsonl*; do
    name=$(basename "$file"); name=$WORK/mended/${name%%.jsonl*}.jsonl
    [ -e "$name" ] || ${PYTHON:-python3} "$here/complete.py" "$file" "$name" "$MEND"
  done
  DATA=$WORK/mended
fi

mkdir -p "$WORK/framed"
label() { [ -e "$WORK/framed/$2.jsonl" ] || $SSDVAE annotate "$1" --soft --out "$WORK/framed/$2.jsonl" $3; }
case $FRAMES in *.csv|*.json) ANNOTATE= ;; esac
[ ! -e "$FRAMES/config.json" ] || ANNOTATE=
for file in "$DATA"/*.jsonl* "$WORK"/plots.jsonl; do
  [ -e "$file" ] || continue
  name=$(basename "$file"); name=${name%%.jsonl*}
  case $name in train*|valid|test) ;; plots) [ "$file" = "$WORK/plots.jsonl" ] || continue ;; *) continue ;; esac
  annotator="--frames $FRAMES $ANNOTATE"
  [ -z "$ANNOTATE" ] || annotator="$annotator --save $WORK/annotator"
  [ ! -e "$WORK/annotator/config.json" ] || annotator="--frames $WORK/annotator"
  label "$file" "$name" "$annotator"
done

if [ ! -e "$WORK/corpus" ]; then
  cat "$WORK"/framed/train*.jsonl > "$WORK/train.jsonl"
  if [ -e "$WORK/framed/plots.jsonl" ]; then
    for copy in plot plot2 plot3; do sed "s/^{\"id\": \"/&$copy-/" "$WORK/framed/plots.jsonl" >> "$WORK/train.jsonl"; done
  fi
  if [ -e "$WORK/framed/valid.jsonl" ]; then
    $SSDVAE prepare --train "$WORK/train.jsonl" --valid "$WORK/framed/valid.jsonl" --test "$WORK/framed/test.jsonl" \
      $PREPARE --out "$WORK/corpus"
  else
    $SSDVAE prepare "$WORK/train.jsonl" $PREPARE --out "$WORK/corpus"
  fi
  rm "$WORK/train.jsonl"
fi

# VECTORS and HEADS are files of word vectors (pretrained/wiki-en/vectors.py writes both): training starts from the
# first, and a head that the model does not know is read as the nearest one in the second.
[ -z "${VECTORS-}" ] || TRAIN="$TRAIN --vectors $VECTORS"
if [ -e "$RUN" ]; then $SSDVAE train --resume "$RUN"; else $SSDVAE train "$WORK/corpus" --out "$RUN" $TRAIN; fi
# The explorer shows the first hundred articles of the validation split, as they were before annotation.
shown=$(find "$DATA/" -maxdepth 1 -name 'valid.jsonl*' | head -n 1)
$SSDVAE pack "$RUN" --out "$OUT" ${FRAMENET:+--framenet "$FRAMENET"} ${shown:+--documents "$shown"} \
  ${HEADS:+--word-vectors "$HEADS"} $PACK
