//! Tests operations on paths: files, directories and links are created, renamed and removed.

use std::io::ErrorKind;

use blitz_io::fs;

use crate::support::temp_files::{file, on_all_kinds_in_folder};

#[test]
fn files_are_renamed_linked_and_removed() {
    on_all_kinds_in_folder(|dir| async move {
        let (one, two, three) = (file(&dir, 5), dir.join("two"), dir.join("three"));
        fs::rename(&one, &two).await?;
        assert!(!fs::try_exists(&one).await?);
        fs::hard_link(&two, &three).await?;
        assert_eq!(fs::read(&three).await?.len(), 5);
        fs::remove_file(&two).await?;
        assert!(fs::try_exists(&three).await?);
        assert_eq!(fs::metadata(&three).await?.len(), 5);
        assert!(fs::canonicalize(dir.join("./three")).await?.is_absolute());
        let mut permissions = fs::metadata(&three).await?.permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&three, permissions).await?;
        assert!(std::fs::metadata(&three)?.permissions().readonly());
        Ok(())
    });
}

#[test]
fn directories_are_made_and_removed() {
    on_all_kinds_in_folder(|dir| async move {
        fs::create_dir(dir.join("a")).await?;
        fs::create_dir_all(dir.join("a/b/c")).await?;
        fs::create_dir_all(dir.join("a/b/c")).await?;
        file(&dir.join("a/b"), 3);
        let error = fs::remove_dir(dir.join("a/b")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty);
        fs::remove_dir(dir.join("a/b/c")).await?;
        fs::remove_dir_all(dir.join("a")).await?;
        assert!(!fs::try_exists(dir.join("a")).await?);
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn links_are_made_read_and_followed() {
    on_all_kinds_in_folder(|dir| async move {
        let target = file(&dir, 5);
        fs::symlink(&target, dir.join("link")).await?;
        assert_eq!(fs::read_link(dir.join("link")).await?, target);
        assert_eq!(fs::read(dir.join("link")).await?.len(), 5);
        assert!(fs::symlink_metadata(dir.join("link")).await?.is_symlink());
        assert!(fs::metadata(dir.join("link")).await?.is_file());
        fs::remove_file(&target).await?;
        assert!(!fs::try_exists(dir.join("link")).await?, "it points nowhere");
        assert_eq!(fs::read(dir.join("link")).await.unwrap_err().kind(), ErrorKind::NotFound);
        Ok(())
    });
}

#[cfg(unix)]
#[test]
fn a_directory_gets_the_requested_mode() {
    use std::os::unix::fs::PermissionsExt;

    on_all_kinds_in_folder(|dir| async move {
        fs::DirBuilder::new().mode(0o700).create(dir.join("a")).await?;
        let mode = fs::metadata(dir.join("a")).await?.permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        Ok(())
    });
}
