// The walk as a page: one function per step, in the order in which attention does them.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/explain/views.h"
#include "cli/terminal/text.h"
#include "rapt/tensor.h"

namespace rapt::cli {
namespace {

constexpr int kNumberCell = 7;  // "-12.34 "
constexpr int kNameWidth = 19;  // ".view(B, L, H, D)  "
constexpr std::int64_t kMostTokens = 16;

// The token that the page follows: the first one that repeats an earlier word other than the sentence's first word, so
// that its previous, same, first and next words all differ. If there is none, the first one that repeats any word, or
// else a token in the middle.
std::int64_t followed_token(const Sentence& sentence, std::int64_t shown) {
  const auto first_place = [&](std::int64_t i) {
    const auto place = std::find(sentence.ids.begin(), sentence.ids.end(), sentence.ids[static_cast<std::size_t>(i)]);
    return place - sentence.ids.begin();
  };
  for (const std::int64_t least : {1, 0}) {
    for (std::int64_t i = 1; i < shown; ++i) {
      if (first_place(i) < i && first_place(i) >= least) return i;
    }
  }
  return shown / 2;
}

class WalkPage {
 public:
  WalkPage(Page& page, const Walk& walk, const Words& words)
      : page_(page),
        terminal_(page.terminal()),
        walk_(walk),
        words_(words),
        labels_(walk.sentence.tokens, tokens_shown(page.terminal(), walk)),
        followed_(followed_token(walk.sentence, std::min(labels_.shown(), table_columns()))) {}

  void embedding();
  void projections();
  void split();
  void scores();
  void scale();
  void mask();
  void softmax();
  void dropout();
  void weighted_sum();
  void combine();
  void output();
  void checks();

 private:
  std::string followed() const { return labels_.name(followed_); }
  std::string head(std::int64_t h) const { return terminal_.colored(group_color(h), head_name(h)); }
  std::string head_name(std::int64_t h) const { return pad_right(say(words_.head, h), head_width()); }
  int head_width() const { return columns(say(words_.head, walk_.heads - 1)); }

  // How many keys fit in a table of numbers; the heat maps show the rest.
  std::int64_t table_columns() const { return (page_.room() - head_width() - 4) / kNumberCell; }

  // A picture of (B, L, E): one strip per shown token.
  void strips(const Tensor& tensor, std::int64_t group) {
    const double largest = largest_magnitude(tensor);
    for (std::int64_t i = 0; i < labels_.shown(); ++i) {
      page_.line(labels_.row(i) + "  " + strip(terminal_, tensor.view().select(0, 0).select(0, i), group, largest));
    }
    page_.line(std::string(static_cast<std::size_t>(labels_.row_width()), ' ') + "  " +
               strip_legend(terminal_, largest));
  }

  // A table of the followed token's row in every head of (B, H, L, L).
  void rows_of_heads(const Tensor& tensor) {
    const int left = head_width() + 2;
    const std::int64_t shown = std::min(labels_.shown(), table_columns());
    const double largest = largest_magnitude(tensor);
    const Labels labels(walk_.sentence.tokens, shown);
    page_.line(std::string(static_cast<std::size_t>(left), ' ') + labels.header(terminal_, kNumberCell));
    for (std::int64_t h = 0; h < walk_.heads; ++h) {
      const ConstTensorView row = tensor.view().select(0, 0).select(0, h).select(0, followed_);
      page_.line(head(h) + "  " + numbers(terminal_, row.slice(0, 0, shown), largest, kNumberCell, page_.width()) +
                 (shown < walk_.length ? "…" : ""));
    }
  }

  void layout_line(std::string_view name, const ConstTensorView& view, std::string_view remark = "") {
    const bool fits = kNameWidth + 2 * (shape_width() + 2) + 2 + columns(remark) <= page_.room();
    layout_columns(name, to_string(view.shape()), to_string(view.strides()), terminal_.dim(fits ? remark : ""));
  }
  void layout_header() {
    page_.line(terminal_.dim(fmt::format("{:{}}{:{}}strides", "", kNameWidth, "shape", shape_width() + 2)));
  }
  void layout_columns(std::string_view name, std::string_view shape, std::string_view strides,
                      std::string_view remark) {
    page_.line(fmt::format("{}{}{}  {}", pad_right(name, kNameWidth), pad_right(shape, shape_width() + 2),
                           pad_right(strides, shape_width() + 2), remark));
  }
  int shape_width() const { return columns(to_string(Dims{1, walk_.length, walk_.heads, walk_.length})); }

  Page& page_;
  const Terminal& terminal_;
  const Walk& walk_;
  const Words& words_;
  Labels labels_;
  std::int64_t followed_;
};

void WalkPage::embedding() {
  page_.heading("1  embedding", fmt::format("x (B, L, E) = {}", to_string(walk_.x.shape())));
  page_.prose(say(words_.embedding, exhibits::kWho - 1, exhibits::kWho, kEmbedding - 1));
  const int half = strip_cell(terminal_) * static_cast<int>(exhibits::kWho) + 1;  // with the gap
  page_.line(
      terminal_.dim(fmt::format("{:{}}{}{}", "", labels_.row_width() + 2, pad_right(words_.who, half), words_.where)));
  strips(walk_.x, exhibits::kWho);
}

void WalkPage::projections() {
  page_.heading("2  W_q  W_k  W_v", fmt::format("q, k, v (B, L, E) = {}", to_string(walk_.q.shape())));
  page_.prose(say(words_.projections, kEmbedding, followed()));
  const double largest = std::max({largest_magnitude(walk_.q), largest_magnitude(walk_.k), largest_magnitude(walk_.v)});
  const std::vector<std::pair<std::string_view, const Tensor*>> all{
      {"q = W_q(x)", &walk_.q}, {"k = W_k(x)", &walk_.k}, {"v = W_v(x)", &walk_.v}};
  for (const auto& [name, tensor] : all) {
    const ConstTensorView row = tensor->view().select(0, 0).select(0, followed_);
    page_.line(fmt::format("{}  {}", name, strip(terminal_, row, walk_.head_size, largest)));
  }
  page_.line(std::string(12, ' ') + strip_legend(terminal_, largest));
}

void WalkPage::split() {
  const ConstTensorView q = walk_.q.view();
  const ConstTensorView viewed = q.split(2, walk_.heads);
  const ConstTensorView heads = viewed.transpose(1, 2);
  page_.heading("3  split_heads", fmt::format("{} → {}", to_string(q.shape()), to_string(heads.shape())));
  layout_header();
  layout_line("q", q);
  layout_line(".view(B, L, H, D)", viewed);
  layout_line(".transpose(1, 2)", heads, words_.split_in_memory);
  page_.line();
  page_.prose(say(words_.split_pieces, followed()));
  const double largest = largest_magnitude(walk_.q);
  for (std::int64_t h = 0; h < walk_.heads; ++h) {
    const std::int64_t first = h * walk_.head_size;
    const std::string place = say(words_.numbers_of, first, first + walk_.head_size - 1);
    const std::string left = head(h) + "  " + pad_right(place, columns(say(words_.numbers_of, 23, 23))) + "  ";
    const int used = head_width() + 4 + columns(say(words_.numbers_of, 23, 23));
    const ConstTensorView piece = heads.select(0, 0).select(0, h).select(0, followed_);
    page_.line(left + numbers(terminal_, piece, largest, kNumberCell, page_.room() - used));
  }
  page_.prose(say(words_.split, 4 * kEmbedding * kEmbedding, kEmbedding));
}

void WalkPage::scores() {
  page_.heading("4  scores = q · kᵀ", fmt::format("(B, H, L, L) = {}", to_string(walk_.scores.shape())));
  page_.prose(say(words_.scores, followed()));
  rows_of_heads(walk_.scores);

  // One of these numbers, product by product: the highest-scoring key of head 0.
  const ConstTensorView row = walk_.scores.view().select(0, 0).select(0, 0).select(0, followed_);
  std::int64_t best = 0;
  for (std::int64_t j = 0; j < labels_.shown(); ++j) {
    if (row.at<double>(j) > row.at<double>(best)) best = j;
  }
  constexpr std::int64_t kMostTerms = 6;
  const std::int64_t terms = std::min(walk_.head_size, kMostTerms);
  std::string sum;
  for (std::int64_t d = 0; d < terms; ++d) {
    sum += fmt::format("{}{:.2f}×{:.2f}", d == 0 ? "" : " + ", walk_.q.view().at<double>(0, followed_, d),
                       walk_.k.view().at<double>(0, best, d));
  }
  if (terms < walk_.head_size) sum += " + … " + say(words_.more, walk_.head_size - terms);
  page_.prose(say(words_.by_hand, say(words_.head, 0), followed(), labels_.name(best)) + " " + sum +
              fmt::format(" = {:.2f}", row.at<double>(best)));
}

void WalkPage::scale() {
  page_.heading("5  scale", fmt::format("× 1/sqrt(d_k) = 1/sqrt({}) = {:.4f}", walk_.head_size,
                                        1 / std::sqrt(static_cast<double>(walk_.head_size))));
  rows_of_heads(walk_.scaled);
  page_.prose(say(words_.scale, exhibits::variance(walk_.scores), exhibits::variance(walk_.scaled), walk_.head_size,
                  100 * exhibits::mean_largest_weight(walk_.unscaled_weights),
                  100 * exhibits::mean_largest_weight(walk_.weights)));
}

void WalkPage::mask() {
  page_.heading("6  apply_mask", walk_.causal ? "causal" : "");
  page_.prose(walk_.causal ? words_.causal_mask : words_.no_mask);
  if (!walk_.causal) return;
  page_.prose(say(words_.causal_row, followed(), followed_));
  rows_of_heads(walk_.masked);
}

void WalkPage::softmax() {
  page_.heading("7  softmax", fmt::format("weights (B, H, L, L) = {}", to_string(walk_.weights.shape())));
  page_.prose(words_.softmax);
  const bool has_edges = std::any_of(walk_.summary.begin(), walk_.summary.end(), [](const HeadSummary& summary) {
    return summary.habit == Habit::previous || summary.habit == Habit::next;
  });
  if (has_edges && !walk_.causal) page_.prose(words_.edges);
  if (walk_.causal) page_.prose(words_.hidden_key);
  for (std::int64_t h = 0; h < walk_.heads; ++h) {
    const bool blinded = walk_.summary[static_cast<std::size_t>(h)].habit == Habit::blinded;
    if (blinded) page_.prose(say(words_.blinded, say(words_.head, h)));
  }
  if (walk_.heads == 1) page_.prose(words_.one_head);
  page_.line();
  const int cell = weight_map_cell(terminal_, labels_, walk_.heads);
  std::vector<Block> maps;
  for (std::int64_t h = 0; h < walk_.heads; ++h) {
    maps.push_back(weight_map(terminal_, labels_, head_title(words_, walk_, h),
                              walk_.weights.view().select(0, 0).select(0, h),
                              walk_.masked.view().select(0, 0).select(0, h), cell));
  }
  page_.lines(arrange(maps, page_.room(), 2));
}

void WalkPage::dropout() {
  page_.heading("8  dropout", "");
  page_.prose(words_.dropout);
}

void WalkPage::weighted_sum() {
  constexpr std::int64_t kHead = 0;
  constexpr std::size_t kMostKeys = 3;
  page_.heading("9  weighted_sum = weights · v", fmt::format("(B, H, L, D) = {}", to_string(walk_.heads_out.shape())));
  page_.prose(say(words_.weighted_sum, followed(), say(words_.head, kHead)));

  const ConstTensorView weights = walk_.weights.view().select(0, 0).select(0, kHead).select(0, followed_);
  const ConstTensorView v = split_heads(walk_.v.view(), walk_.heads).select(0, 0).select(0, kHead);
  const double largest = largest_magnitude(v);
  std::vector<std::int64_t> keys(static_cast<std::size_t>(labels_.shown()));
  std::iota(keys.begin(), keys.end(), 0);
  std::stable_sort(keys.begin(), keys.end(),
                   [&](std::int64_t a, std::int64_t b) { return weights.at<double>(a) > weights.at<double>(b); });
  if (keys.size() > kMostKeys) keys.resize(kMostKeys);

  const int left = 13 + labels_.row_width();
  const int room = page_.room() - left - 1;
  double rest = 1;
  for (std::size_t n = 0; n < keys.size(); ++n) {
    const double weight = weights.at<double>(keys[n]);
    rest -= weight;
    const std::string name = fmt::format("{} {:.2f} × v[{}]", n == 0 ? " " : "+", weight, labels_.name(keys[n]));
    page_.line(pad_right(name, left) + " " + numbers(terminal_, v.select(0, keys[n]), largest, kNumberCell, room));
  }
  const auto others = walk_.length - static_cast<std::int64_t>(keys.size());
  if (others > 0) page_.line("+ " + terminal_.dim(say(words_.other_keys, others, std::max(0.0, rest))));
  const ConstTensorView out = walk_.heads_out.view().select(0, 0).select(0, kHead).select(0, followed_);
  page_.line(pad_right("= out", left) + " " + numbers(terminal_, out, largest, kNumberCell, room));
}

void WalkPage::combine() {
  const ConstTensorView out = walk_.heads_out.view();
  page_.heading("10  combine_heads", fmt::format("{} → {}", to_string(out.shape()), to_string(walk_.combined.shape())));
  page_.prose(words_.combine);
  layout_header();
  layout_line("out", out);
  layout_line(".transpose(1, 2)", out.transpose(1, 2));
  layout_line(".contiguous()", Tensor::copy_of(out.transpose(1, 2)), words_.combine_copy);
  layout_line(".view(B, L, E)", walk_.combined);
}

void WalkPage::output() {
  page_.heading("11  W_o", fmt::format("y (B, L, E) = {}", to_string(walk_.y.shape())));
  page_.prose(words_.output);
  strips(walk_.y, kEmbedding);
}

void WalkPage::checks() {
  page_.heading(words_.checks, "");
  const auto mark = [&](double error) { return error < 1e-12 ? "✓" : "✗"; };
  page_.prose(fmt::format("{} {}", mark(walk_.row_sum_error), say(words_.rows_sum, walk_.row_sum_error)));
  page_.prose(fmt::format("{} {}", mark(walk_.output_error), say(words_.out_equals, walk_.output_error)));

  page_.heading(words_.try_next, "");
  const std::string lang = fmt::format("--lang {}", words_.try_lang);
  const std::vector<std::pair<std::string_view, std::string_view>> ideas{
      {"--causal", words_.try_causal},   {"--wrong-split", words_.try_wrong},
      {"--heads 1", words_.try_heads},   {"--questions", words_.try_questions},
      {"--text \"…\"", words_.try_text}, {lang, words_.try_lang_means},
      {"--json", words_.try_json}};
  for (const auto& [option, meaning] : ideas) {
    if ((option == "--causal" && walk_.causal) || (option == "--heads 1" && walk_.heads == 1)) continue;
    const std::string command = fmt::format("rapt explain {}  ", pad_right(option, 13));
    page_.line(command + terminal_.dim(clip(meaning, page_.room() - columns(command))));
  }
}

}  // namespace

std::string head_title(const Words& words, const Walk& walk, std::int64_t head) {
  const HeadSummary& summary = walk.summary[static_cast<std::size_t>(head)];
  const double percent = 100 * summary.share;
  const std::string habit = [&] {
    switch (summary.habit) {
      case Habit::previous: return say(words.habit_previous, percent);
      case Habit::same: return say(words.habit_same, percent);
      case Habit::itself: return say(words.habit_itself, percent);
      case Habit::first: return say(words.habit_first, percent);
      case Habit::next: return say(words.habit_next, percent);
      case Habit::blinded: return say(words.habit_blinded);
      case Habit::spread: break;
    }
    return say(words.habit_spread, summary.keys_in_sight);
  }();
  return say(words.head, head) + " · " + habit;
}

std::int64_t tokens_shown(const Terminal& terminal, const Walk& walk) {
  const std::int64_t most = std::min(walk.length, kMostTokens);
  const Labels labels(walk.sentence.tokens, most);
  const std::int64_t fit = (terminal.width() - 3 - labels.row_width()) / kNarrowestCell;
  return std::clamp<std::int64_t>(fit, 1, most);
}

void show_title(Page& page, const Walk& walk, const Words& words, std::string_view title) {
  std::string sentence;
  for (const std::string& token : walk.sentence.tokens) sentence += (sentence.empty() ? "" : " ") + token;
  page.line(page.terminal().bold(fmt::format("rapt explain · {}", title)));
  page.line();
  page.line(clip("“" + sentence + "”", page.room()));
  page.prose(say(words.sizes, walk.length, kEmbedding, walk.heads, walk.head_size));
  const std::int64_t shown = tokens_shown(page.terminal(), walk);
  if (shown < walk.length) page.prose(say(words.shortened, shown, walk.length));
}

void show_walk(Page& page, const Walk& walk, const Words& words) {
  show_title(page, walk, words, words.title);
  page.quiet(words.made);
  WalkPage steps(page, walk, words);
  steps.embedding();
  steps.projections();
  steps.split();
  steps.scores();
  steps.scale();
  steps.mask();
  steps.softmax();
  steps.dropout();
  steps.weighted_sum();
  steps.combine();
  steps.output();
  steps.checks();
}

}  // namespace rapt::cli
