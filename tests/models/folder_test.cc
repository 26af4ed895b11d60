// The files of a model in a folder: what is read, links as in a hub's cache, and one weights file of several.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/files.h"
#include "models/model.h"
#include "models/tiny_model.h"
#include "support/files.h"

namespace rapt::test {
namespace {

namespace fs = std::filesystem;
using models::Model;
using models::ModelFiles;
using ::testing::HasSubstr;

constexpr const char* kBert = RAPT_TEST_DATA "/models/bert";

TEST(ModelFolder, IsReadWhole) {
  const ModelFiles files = ModelFiles::folder(kBert);
  EXPECT_EQ(files.where(), kBert);
  EXPECT_TRUE(files.has("config.json"));
  EXPECT_TRUE(files.has("vocab.txt"));
  EXPECT_EQ(files.weights().size(), 1);
  const TinyModel tiny("bert");
  const Model model = Model::read(files);
  EXPECT_LT(largest_difference(model.run(tiny.ids()).weights, tiny.expected.at("weights")), 2e-6);
}

TEST(ModelFolder, IsReadThroughTheLinksOfASnapshot) {
  const TemporaryFolder cache;
  fs::create_directories(cache / "blobs");
  fs::create_directories(cache / "snapshots/main");
  int blob = 0;
  for (const auto& each : fs::directory_iterator(kBert)) {
    const std::string name = std::to_string(++blob);
    fs::copy_file(each.path(), cache / ("blobs/" + name));
    fs::create_symlink("../../blobs/" + name, cache / ("snapshots/main/" + each.path().filename().string()));
  }
  const ModelFiles folder = ModelFiles::folder(cache / "snapshots/main");
  EXPECT_EQ(folder.weights().size(), 1);
  EXPECT_EQ(Model::read(folder).config().heads, 4);
  const ModelFiles file = ModelFiles::folder(cache / "snapshots/main/model.safetensors");
  EXPECT_EQ(Model::read(file).config().heads, 4);
  fs::create_symlink("../../blobs/none", cache / "snapshots/main/gone.json");  // a file that was not downloaded
  EXPECT_FALSE(ModelFiles::folder(cache / "snapshots/main").has("gone.json"));
}

TEST(ModelFolder, IsRestrictedToTheWeightsFileThatIsNamed) {
  const TemporaryFolder folder;
  for (const auto& each : fs::directory_iterator(kBert)) fs::copy_file(each.path(), folder / each.path().filename());
  fs::copy_file(fs::path(kBert) / "model.safetensors", folder / "other.safetensors");
  EXPECT_THAT(refusal_of([&] {
                const ModelFiles both = ModelFiles::folder(folder.path());
                (void)Model::read(both);
              }),
              HasSubstr("two safetensors files have a tensor"));
  const ModelFiles one = ModelFiles::folder(folder / "other.safetensors");
  EXPECT_EQ(one.where(), folder / "other.safetensors");
  EXPECT_EQ(one.weights().size(), 1);
  EXPECT_EQ(Model::read(one).config().layers, 2);
}

TEST(ModelFolder, IsRefusedIfThereIsNone) {
  const TemporaryFolder folder;
  const std::string advice =
      "; a model is a folder with config.json, a tokenizer and safetensors files, or one of its safetensors files";
  EXPECT_EQ(refusal_of([&] { (void)ModelFiles::folder(folder / "none"); }),
            "model: " + (folder / "none") + ": there is no such folder" + advice);
  write_raw(folder / "a.bin", "x");
  EXPECT_EQ(refusal_of([&] { (void)ModelFiles::folder(folder / "a.bin"); }),
            "model: " + (folder / "a.bin") + ": is not a folder" + advice);
  write_raw(folder / "a.safetensors", "x");
  EXPECT_THAT(refusal_of([&] { (void)ModelFiles::folder(folder.path()); }), HasSubstr("a.safetensors"));
}

TEST(ModelFolder, RefusesATextThatIsTooLongOnlyWhenItIsAskedFor) {
  const TemporaryFolder folder;
  write_raw(folder / "config.json", "{}");
  write_raw(folder / "notes.txt", "x");
  fs::resize_file(folder / "notes.txt", ModelFiles::kMostText + 1);  // a hole: it takes no space
  const ModelFiles files = ModelFiles::folder(folder.path());
  EXPECT_EQ(files.text("config.json"), "{}");
  EXPECT_THAT(refusal_of([&] { (void)files.text("notes.txt"); }), HasSubstr("notes.txt has 67108865 bytes"));
}

}  // namespace
}  // namespace rapt::test
