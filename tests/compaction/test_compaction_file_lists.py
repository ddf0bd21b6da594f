import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.data.files import (
    FileOperations,
    collect_files,
    format_file_lists,
    strip_file_lists,
    with_file_lists,
)
from tenuto.protocol.entry import BranchSummaryEntry
from tenuto.protocol.message import CompactionDetails, DiffView, FileUse, ToolResultMessage
from tenuto.text.estimate import estimate_text
from tests.compaction.listing import listed_in

DIRECTORY = "/home/ann/shop"


def touched(*files: FileUse, ui: tuple[DiffView, ...] = ()) -> ToolResultMessage:
    return ToolResultMessage(call_id="c", name="edit", parts=(), files=files, ui=ui)


def test_files_come_from_results_diffs_branches_and_the_tracker():
    entries = [
        touched(FileUse(path="a.py", op="read"), FileUse(path="b.py", op="read")),
        touched(FileUse(path="b.py", op="edit")),
        touched(FileUse(path="/shop/lib.py", op="edit"), ui=(DiffView(path="lib.py", diff="+x"),)),
        touched(ui=(DiffView(path="new.py", diff="+x", created=True),)),
        BranchSummaryEntry(summary="s", from_seq=1, details={"read_files": ["r.py"], "modified_files": ["m.py"]}),
    ]
    kept = [touched(FileUse(path="tail.py", op="read"))]
    tracker = {
        "tail.py": FileUse(path="tail.py", op="read"),
        "seen.py": FileUse(path="seen.py", op="read"),
        "gone.py": FileUse(path="gone.py", op="delete"),
    }
    files = collect_files(entries, kept, None, tracker)
    assert set(files.read) == {"a.py", "r.py", "seen.py"}
    assert set(files.modified) == {"b.py", "/shop/lib.py", "new.py", "m.py", "gone.py"}


def test_lists_accumulate_over_rounds_and_a_modified_file_is_not_repeated_as_read():
    first = collect_files([touched(FileUse(path="a.py", op="read"))], [], None, {})
    second = collect_files([touched(FileUse(path="b.py", op="write"))], [], first.details(), {})
    third = collect_files([touched(FileUse(path="a.py", op="edit"))], [], second.details(), {})
    assert third.details() == CompactionDetails(read_files=(), modified_files=("a.py", "b.py"))


def test_the_text_is_sorted_one_folder_a_line_and_leaves_empty_lists_out():
    files = FileOperations(read=("z/z.py", "a/a.py"))
    assert format_file_lists(files) == "<read-files>\na/a.py\nz/z.py\n</read-files>"
    assert format_file_lists(FileOperations()) == ""


def test_only_the_newest_hundred_are_in_the_text_and_all_in_the_details():
    files = FileOperations(modified=tuple(f"f{number:03}.py" for number in range(250)))
    text = format_file_lists(files)
    listed, left_out = listed_in(text, "modified-files")
    assert listed == {f"f{number}.py" for number in range(150, 250)}
    assert left_out == 150
    assert len(files.details().modified_files) == 250


def test_lists_are_stripped_before_an_update_and_added_again():
    files = FileOperations(read=("a.py",), modified=("b.py",))
    summary = with_file_lists("## Goal\nx", files)
    assert summary.count("<read-files>") == summary.count("<modified-files>") == 1
    assert strip_file_lists(summary) == "## Goal\nx"
    assert with_file_lists(summary, files) == summary
    assert strip_file_lists("notes\n\n<read-files>\nnever closed.py") == "notes"


def test_t8_paths_are_relative_and_those_of_a_folder_stand_together():
    files = FileOperations(
        read=(f"{DIRECTORY}/README.md", "/etc/hosts", f"{DIRECTORY}-old/a.py"),
        modified=(
            f"{DIRECTORY}/src/shop/price.py",
            f"{DIRECTORY}/src/shop/cart.py",
            f"{DIRECTORY}/src/x.py",
            f"{DIRECTORY}/web/a.ts",
            f"{DIRECTORY}/web/b.css",
        ),
        directory=DIRECTORY,
    )
    assert format_file_lists(files) == (
        f"<read-files>\n/etc/hosts\n{DIRECTORY}-old/a.py\nREADME.md\n</read-files>\n\n"
        "<modified-files>\nsrc/shop/{cart,price}.py\nsrc/x.py\nweb/{a.ts,b.css}\n</modified-files>"
    )
    assert files.details().modified_files[0] == f"{DIRECTORY}/src/shop/cart.py"


def test_t8_where_room_is_short_the_read_ones_go_first_and_it_is_said():
    """14 read and 7 modified files in the room of a 16k window: 45 % and 90 % of them were in view."""
    read = tuple(f"{DIRECTORY}/docs/part{number}/notes.md" for number in range(40))
    modified = tuple(f"{DIRECTORY}/src/part{number}/module.py" for number in range(7))
    files = FileOperations(read=read, modified=modified, directory=DIRECTORY)
    text = format_file_lists(files, 120)
    assert estimate_text(text) <= 120
    changed, none_left_out = listed_in(text, "modified-files")
    assert (len(changed), none_left_out) == (7, 0)
    seen, left_out = listed_in(text, "read-files")
    assert seen == {path.removeprefix(f"{DIRECTORY}/") for path in read[left_out:]}, "the newest"
    assert len(seen) + left_out == 40
    assert left_out


NAMES = st.text(
    st.one_of(st.sampled_from('ab.{}," <>/…\n\r\x0b\x85\u2028\ud800é語~@-'), st.characters()), min_size=1, max_size=12
)
PATHS = st.one_of(
    NAMES,
    st.builds(
        "{}/{}{}".format, st.sampled_from(["src", "src/shop", "a b", DIRECTORY]), NAMES, st.sampled_from(["", ".py"])
    ),
    st.sampled_from(["</modified-files>", "… 3 more; recall or the session's details have all", '"a"', "{a,b}.py"]),
)


@given(
    st.lists(PATHS, max_size=30, unique=True),
    st.lists(PATHS, max_size=30, unique=True),
    st.none() | st.integers(0, 300),
)
def test_t8_reading_the_lists_back_gives_exactly_what_was_listed(read, modified, limit):
    """Whatever the paths are called: the newest ones of each kind, and what is missing is counted."""
    files = FileOperations(read=tuple(read), modified=tuple(modified), directory=DIRECTORY)
    text = format_file_lists(files, limit)
    left = {}
    for tag, paths in (("read-files", read), ("modified-files", modified)):
        shown = list(dict.fromkeys(path.removeprefix(f"{DIRECTORY}/") or path for path in paths))
        listed, left[tag] = listed_in(text, tag)
        assert listed == set(shown[left[tag] :])
    if limit is None:
        assert not any(left.values())
    if left["modified-files"] and read:
        assert not listed_in(text, "read-files")[0], "the read ones go first"
    assert strip_file_lists(f"## Goal\nx\n\n{text}") == "## Goal\nx"


@pytest.mark.parametrize("path", ["a\nb.py", "</read-files>", "x <y>", "{a,b}.py", '"q".py'])
def test_t8_a_path_that_could_be_misread_stands_quoted_on_its_own_line(path):
    text = format_file_lists(FileOperations(read=(path, "c.py")))
    assert len(text.splitlines()) == 4
    assert listed_in(text, "read-files") == ({path, "c.py"}, 0)
